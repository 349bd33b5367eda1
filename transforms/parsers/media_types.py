"""Media types: told by a file name, the same on every machine, and whether they are text."""

from __future__ import annotations

from functools import lru_cache

# What an OCR engine has read, see `transforms.parsers.ocr`.
OCR = "application/vnd.chunkmill.ocr+json"

_EXTENSIONS = {
    "text/markdown": "md markdown mdown mkd mkdn mdwn mdx qmd rmd",
    "text/plain": "txt text log",
    "text/html": "html htm xhtml",
    "text/x-rst": "rst",
    "text/asciidoc": "adoc asciidoc asc",
    "text/org": "org",
    "text/x-tex": "tex ltx sty cls",
    "text/css": "css",
    "text/csv": "csv",
    "text/tab-separated-values": "tsv tab",
    "text/vtt": "vtt",
    "application/x-subrip": "srt",
    "application/json": "json json5 geojson webmanifest",
    "application/jsonl": "jsonl ndjson",
    "application/x-ipynb+json": "ipynb",
    "application/xml": "xml xsd xsl xslt",
    "application/yaml": "yaml yml",
    "application/toml": "toml",
    "text/x-ini": "ini cfg conf properties",
    "message/rfc822": "eml",
    "text/x-python": "py pyi pyw",
    "text/javascript": "js mjs cjs",
    "text/jsx": "jsx",
    "text/typescript": "ts mts cts",
    "text/tsx": "tsx",
    "text/x-go": "go",
    "text/x-java": "java",
    "text/x-kotlin": "kt kts",
    "text/x-scala": "scala",
    "text/x-swift": "swift",
    "text/x-rust": "rs",
    "text/x-c": "c h",
    "text/x-c++": "cpp cc cxx hpp hh hxx",
    "text/x-csharp": "cs",
    "text/x-ruby": "rb",
    "text/x-php": "php",
    "text/x-perl": "pl pm",
    "text/x-lua": "lua",
    "text/x-r": "r",
    "text/x-sh": "sh bash zsh",
    "application/sql": "sql",
    "application/pdf": "pdf",
    "application/epub+zip": "epub",
    "application/rtf": "rtf",
    "application/msword": "doc",
    "application/vnd.ms-excel": "xls",
    "application/vnd.ms-powerpoint": "ppt",
    "application/vnd.ms-outlook": "msg",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
    "application/vnd.oasis.opendocument.text": "odt",
    "application/vnd.oasis.opendocument.spreadsheet": "ods",
    "application/vnd.oasis.opendocument.presentation": "odp",
    "application/vnd.apache.parquet": "parquet",
    "application/vnd.apache.arrow.file": "arrow feather",
    "application/vnd.sqlite3": "sqlite sqlite3 db",
    "application/zip": "zip jar whl",
    "application/gzip": "gz tgz",
    "application/zstd": "zst",
    "application/x-bzip2": "bz2",
    "application/x-xz": "xz",
    "application/x-7z-compressed": "7z",
    "application/x-tar": "tar",
    "application/wasm": "wasm",
    "application/octet-stream": "bin exe dll so dylib o a pyc class",
    "image/png": "png",
    "image/jpeg": "jpg jpeg",
    "image/gif": "gif",
    "image/webp": "webp",
    "image/avif": "avif",
    "image/heic": "heic",
    "image/bmp": "bmp",
    "image/tiff": "tif tiff",
    "image/svg+xml": "svg",
    "image/vnd.microsoft.icon": "ico",
    "audio/mpeg": "mp3",
    "audio/wav": "wav",
    "audio/ogg": "ogg oga opus",
    "audio/flac": "flac",
    "audio/mp4": "m4a",
    "video/mp4": "mp4 m4v",
    "video/webm": "webm",
    "video/quicktime": "mov",
    "video/x-matroska": "mkv",
    "video/x-msvideo": "avi",
    "font/ttf": "ttf",
    "font/otf": "otf",
    "font/woff": "woff",
    "font/woff2": "woff2",
}
_BY_EXTENSION = {
    extension: media_type
    for media_type, extensions in _EXTENSIONS.items()
    for extension in extensions.split()
}
_ALIASES = {
    "text/x-markdown": "text/markdown",
    "text/md": "text/markdown",
    "application/markdown": "text/markdown",
    "text/json": "application/json",
    "application/x-json": "application/json",
    "application/x-ndjson": "application/jsonl",
    "application/ndjson": "application/jsonl",
    "application/json-lines": "application/jsonl",
    "text/xml": "application/xml",
    "text/yaml": "application/yaml",
    "text/x-yaml": "application/yaml",
    "application/x-yaml": "application/yaml",
    "application/javascript": "text/javascript",
    "application/x-javascript": "text/javascript",
    "application/typescript": "text/typescript",
    "text/x-typescript": "text/typescript",
    "application/x-python-code": "text/x-python",
    "application/x-sh": "text/x-sh",
    "application/x-httpd-php": "text/x-php",
    "application/x-tex": "text/x-tex",
    "application/x-latex": "text/x-tex",
    "application/x-toml": "application/toml",
    "text/x-asciidoc": "text/asciidoc",
    "text/prs.fallenstein.rst": "text/x-rst",
    "application/xhtml+xml": "text/html",
    "application/csv": "text/csv",
    "application/x-pdf": "application/pdf",
    "application/x-gzip": "application/gzip",
    "application/x-zip-compressed": "application/zip",
    "application/x-parquet": "application/vnd.apache.parquet",
    "image/jpg": "image/jpeg",
}
# What stores say of an object whose type nobody told them.
_SAYS_NOTHING = {
    "",
    "application/octet-stream",
    "binary/octet-stream",
    "application/x-unknown",
    "application/unknown",
}
_TEXTS = {
    "application/json",
    "application/json5",
    "application/jsonl",
    "application/sql",
    "application/toml",
    "application/x-subrip",
    "application/xml",
    "application/yaml",
    "message/rfc822",
}
_BINARIES = ("application/", "audio/", "font/", "image/", "message/", "model/", "multipart/", "video/")


def media_type_of(name: str) -> str | None:
    """Media type of a file name, path or URI by its extension, in any case; None if it tells nothing."""
    if name.lower().endswith(".ocr.json"):
        return OCR
    stem, dot, extension = name.rpartition("/")[2].rpartition(".")
    return _BY_EXTENSION.get(extension.lower()) if stem and dot else None


@lru_cache
def split_media_type(value: str | None) -> tuple[str | None, str | None]:
    """Media type and charset of a declared type such as `Text/X-Markdown; charset="UTF-8"`.

    Returns:
        The media type in lower case, by its usual name; None if `value` tells nothing. The charset, if any.
    """
    declared, *parameters = (value or "").split(";")
    media_type = declared.strip().lower()
    charset = None
    for parameter in parameters:
        name, _, setting = parameter.partition("=")
        if name.strip().lower() == "charset":
            charset = setting.strip().strip("\"'") or None
    media_type = _ALIASES.get(media_type, media_type)
    return (None if media_type in _SAYS_NOTHING else media_type), charset


def is_text(media_type: str) -> bool:
    """Whether files of a media type are text, in whatever notation."""
    if media_type in _TEXTS:
        return True
    if media_type.startswith("application/"):
        return media_type.endswith(("+json", "+xml", "+yaml"))
    return not media_type.startswith(_BINARIES)
