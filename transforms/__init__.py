"""What the job is made of: pure functions over documents, and thin Beam transforms around them."""
