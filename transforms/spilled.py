"""Packs of a wave set aside in the staging of their run: memory holds a few of them, and a rerun finds what is done.

A wave is what one read task gives. Its packs lie one after the other in a file, and a marker, written last, says
where: a wave without a marker was cut off and is done again.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from uuid import uuid4

import pyarrow as pa

from transforms.fingerprint import fingerprint
from transforms.packs import Compression, Pack
from transforms.provenance import Run, pipeline_version
from transforms.sources import ReadTask
from transforms.table import Store, to_json

# Of a run, what its packs do not hold: the writer adds it.
_NAMES = ("run_id", "created_at", "job_id", "increment")


@dataclass(frozen=True, slots=True)
class Spilled:
    """The packs of one shard in the file of a wave.

    Args:
        path: The file, relative to the output.
        ranges: Start and end of each pack in it.
    """

    path: str
    ranges: tuple[tuple[int, int], ...]

    def read(self, output: str) -> Sequence[bytes | pa.Buffer]:
        """The packs.

        Args:
            output: Root of the table.
        """
        return Store(output, "reader").read_ranges(self.path, self.ranges)


class Wave:
    """A read task and the packs that were made of it.

    Its name is made of all that its packs depend on, so that other inputs or settings under the same run id never
    find them.

    Args:
        task: The task.
        run: The run.
        output: Root of the table.
    """

    def __init__(self, task: ReadTask, run: Run, output: str) -> None:
        self._store = Store(output, run.run_id)
        facts = {name: value for name, value in asdict(run).items() if name not in _NAMES}
        name = fingerprint({"task": asdict(task), "run": facts, "version": pipeline_version()})
        self._path = f"{self._store.waves}/{name}"
        # To compress for a disk takes more CPU than to write more bytes; on the way to a store they would count.
        self.compression: Compression = None if self._store.is_local else "lz4"

    def spilled(self) -> dict[int, Spilled] | None:
        """The packs by shard; None if the wave was never finished."""
        marker = self._store.read(f"{self._path}.json")
        if marker is None:
            return None
        facts = json.loads(marker)
        if self._store.size(facts["path"]) != facts["size"]:
            return None  # the machine went down before all of it was on disk
        return {
            int(shard): Spilled(facts["path"], tuple((start, end) for start, end in ranges))
            for shard, ranges in facts["shards"].items()
        }

    def spill(self, packs: Iterable[Pack]) -> dict[int, Spilled]:
        """Write the packs as they come, and then the marker; gives them back by shard."""
        path = f"{self._path}-{uuid4().hex}.packs"
        ranges: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        size = 0
        with self._store.open(path) as file:
            for shard, pack in packs:
                file.write(pack)
                ranges[shard].append((size, size + len(pack)))
                size += len(pack)
        self._store.write(f"{self._path}.json", to_json({"path": path, "size": size, "shards": ranges}))
        return {shard: Spilled(path, tuple(found)) for shard, found in ranges.items()}
