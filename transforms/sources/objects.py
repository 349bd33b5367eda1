"""Objects: one document each."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from transforms.fingerprint import digest_of
from transforms.records import DeadLetter, RawDocument
from transforms.sources.files import SourceFile, address_id
from transforms.sources.settings import ReadSettings
from transforms.sources.tasks import ReadTask
from transforms.storage import filesystem, is_transient

_AT_ONCE = 16


def read_objects(task: ReadTask, settings: ReadSettings) -> Iterator[RawDocument | DeadLetter]:
    """The documents of a bundle of objects, in order."""
    read = partial(_read_object, settings=settings)
    if not filesystem(task.files[0].uri)[0].async_impl:
        yield from map(read, task.files)
        return
    # An object store keeps a reader waiting; the bundle's size bounds what is held.
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        yield from pool.map(read, task.files)


def _read_object(file: SourceFile, settings: ReadSettings) -> RawDocument | DeadLetter:
    limit = settings.max_document_bytes
    size = file.size
    if size <= limit:
        try:
            store, path = filesystem(file.uri)
            content = store.cat_file(path)
        except OSError as error:
            if is_transient(error):
                raise
            message = f"cannot be read: {error.strerror or repr(error)}"
            return file.failed(settings.source_name, "unreadable", message)
        size = len(content)
    if size > limit:
        message = f"the document has {size} bytes; max_document_bytes is {limit}"
        return file.failed(settings.source_name, "too_large", message)
    digest = digest_of(content)
    source = replace(file.source(settings.source_name), size=size, content_sha256=digest.sha256)
    document = RawDocument(
        document_id=address_id(file.uri),
        content=content,
        media_type=settings.media_type,
        charset=settings.charset,
        source=source,
    )
    document.digest = digest
    return document
