"""A peer of the wire that shares no code with Ringway: sockets of the standard library, Arrow of pyarrow."""

import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
from decimal import Decimal

import pyarrow as pa

WATERMARK, BARRIER, CLOSE, CREDIT, TERMINAL, IDLE, BATCH, DRAIN = range(1, 9)
WINDOW_ROWS = 2048
PATIENCE_S = 30


def frame(kind, body=b""):
    return struct.pack(">IB", len(body) + 1, kind) + body


def ipc(batch, **options):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def rows_of(batch):
    columns = [column.to_pylist() for column in batch.columns]
    return [list(row) for row in zip(*columns)] if columns else [[] for _ in range(batch.num_rows)]


class Reader:
    """Exactly so many bytes of a socket, or nothing at its end."""

    def __init__(self, connection):
        self.connection = connection

    def bytes(self, count):
        data = b""
        while len(data) < count:
            more = self.connection.recv(count - len(data))
            if not more:
                assert not data, f"the stream is cut after {len(data)} of {count} bytes"
                return None
            data += more
        return data

    def frame(self):
        header = self.bytes(4)
        if header is None:
            return None
        (length,) = struct.unpack(">I", header)
        payload = self.bytes(length)
        return payload[0], payload[1:]


def receive(connection):
    """All frames of a sender that speaks version 1, each batch granted as it comes."""
    connection.sendall(frame(CREDIT, struct.pack(">I", WINDOW_ROWS)))
    reader, frames = Reader(connection), []
    while (one := reader.frame()) is not None:
        kind, body = one
        if kind == BATCH:
            table = pa.ipc.open_stream(body)
            batch = table.read_next_batch()
            batch.validate(full=True)
            connection.sendall(frame(CREDIT, struct.pack(">I", batch.num_rows)))
            frames.append((kind, batch))
        else:
            frames.append((kind, body))
    assert frames and frames[-1][0] == CLOSE, "the stream ends with a Close"
    return frames[:-1]


def run_send(ringway, wire_type, path):
    """What `ringway send` writes."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(PATIENCE_S)
        port = server.getsockname()[1]
        command = [ringway, "send", "--connect", f"127.0.0.1:{port}", "--type", wire_type, path]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        connection, _ = server.accept()
        connection.settimeout(PATIENCE_S)
        frames = receive(connection)
        connection.close()
        _, errors = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, f"send ended with {process.returncode}: {errors}"
        return frames


def run_recv(ringway, wire_type, frames):
    """What `ringway recv` prints of these frames, and its exit code."""
    command = [ringway, "recv", "--listen", "127.0.0.1:0", "--type", wire_type, "--once"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    listening = process.stderr.readline().split()
    assert listening[0] == "listening", listening
    host, _, port = listening[1].rpartition(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as connection:
        kind, body = Reader(connection).frame()
        assert kind == CREDIT and len(body) >= 4, "a receiver speaks first"
        assert struct.unpack(">I", body[:4]) == (WINDOW_ROWS,), "the first grant of version 1"
        connection.sendall(b"".join(frames))
        connection.shutdown(socket.SHUT_WR)
        output, errors = process.communicate(timeout=PATIENCE_S)
    return [json.loads(line) for line in output.splitlines()], process.returncode, errors


def typed(values, *columns):
    fields = [pa.field(*column, nullable=False) for column in columns]
    schema = pa.schema([pa.field("event_time", pa.int64())] + fields)
    arrays = [pa.array([row[index] for row in values], field.type) for index, field in enumerate(schema)]
    return pa.record_batch(arrays, schema=schema)


def types():
    """The types of the wire's table: name, rows as lines have them, the batch that they are."""
    i64, text = pa.int64(), pa.utf8()
    low, high = -(2**63), 2**63 - 1
    plain = [
        ("int64", [[1000, 1], [None, low], [high, high]], [("value", i64)]),
        ("int32", [[1, -(2**31)], [None, 2**31 - 1]], [("value", pa.int32())]),
        ("uint32", [[1, 0], [None, 2**32 - 1]], [("value", pa.uint32())]),
        ("uint64", [[1, 0], [None, 2**64 - 1]], [("value", pa.uint64())]),
        ("string", [[1, "a"], [None, "nul\0in"], [3, "漢"]], [("value", text)]),
        ("int64-keyed", [[1, 2, 3], [None, low, high]], [("key", i64), ("value", i64)]),
        ("string-keyed", [[1, "k", 3], [None, "", -1]], [("key", text), ("value", i64)]),
    ]
    for name, rows, columns in plain:
        yield name, rows, typed(rows, *columns)
    lines = [[1, "6100ff"], [None, ""]]
    raw = [[time, bytes.fromhex(value)] for time, value in lines]
    yield "binary", lines, typed(raw, ("value_bytes", pa.binary()))


def batches():
    """Batches of any schema: name, batch, the rows that `recv` prints."""
    ints = pa.array([1, None, 3], pa.int32())
    cases = {
        "decimals": (
            pa.array([Decimal("1.25"), None, Decimal("-3.10")], pa.decimal128(9, 2)),
            ["1.25", None, "-3.10"],
        ),
        "dictionary": (pa.array(["a", None, "a"]).dictionary_encode(), ["a", None, "a"]),
        "views": (pa.array(["short", None, "longer than twelve bytes"], pa.string_view()), None),
        "lists": (pa.array([[1, 2], None, []], pa.list_(pa.int32())), None),
        "large-lists": (pa.array([[1], None, [2, None]], pa.large_list(pa.int64())), None),
        "structures": (pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}]), None),
        "maps": (pa.array([[("k", 1)], None, []], pa.map_(pa.utf8(), pa.int64())), [{"k": 1}, None, {}]),
        "booleans": (pa.array([True, None, False]), None),
        "floats": (pa.array([1.5, None, float("nan")]), [1.5, None, "NaN"]),
        "fixed-binary": (pa.array([b"ab", None, b"cd"], pa.binary(2)), ["6162", None, "6364"]),
        "nothing": (pa.nulls(3), None),
        "runs": (
            pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["x", "y"])),
            ["x", "x", "y"],
        ),
        "slice": (pa.array(list(range(100)), pa.int64()).slice(37, 3), None),
    }
    for name, (array, shown) in cases.items():
        batch = pa.record_batch([ints, array], names=["n", "value"])
        shown = array.to_pylist() if shown is None else shown
        yield name, batch, [list(row) for row in zip([1, None, 3], shown)]
    twice = pa.record_batch([ints, ints], names=["n", "n"])
    yield "duplicate-names", twice, [[1, 1], [None, None], [3, 3]]
    yield "no-rows", ints_batch(0), []


def ints_batch(rows):
    return pa.record_batch([pa.array(range(rows), pa.int64())], names=["n"])


CONTROL = [
    ({"watermark": -1}, frame(WATERMARK, struct.pack(">q", -1))),
    ({"idle": 1500}, frame(IDLE, struct.pack(">q", 1500))),
    ({"barrier": 7, "mode": "aligned", "terminal": False}, frame(BARRIER, struct.pack(">QB", 7, 0))),
    ({"barrier": 8, "mode": "unaligned", "terminal": False}, frame(BARRIER, struct.pack(">QB", 8, 1))),
    ({"barrier": 9, "mode": 7, "terminal": False}, frame(BARRIER, struct.pack(">QB", 9, 7))),
    (
        {"barrier": 2**64 - 1, "mode": "aligned", "terminal": True},
        frame(TERMINAL, struct.pack(">QB", 2**64 - 1, 0)),
    ),
    ({"drain": {"subtask": 3, "target_parallelism": 8}}, frame(DRAIN, struct.pack(">II", 3, 8))),
]


def cases(ringway, folder):
    """Every case: its name and what it checks."""
    for name, rows, batch in types():
        yield f"send-{name}", lambda n=name, r=rows, b=batch: check_send(ringway, folder, n, r, b)
        yield f"recv-{name}", lambda n=name, r=rows, b=batch: check_recv(ringway, n, ipc(b), r)
    for name, batch, shown in batches():
        yield f"recv-arrow-{name}", lambda b=batch, s=shown: check_recv(ringway, "arrow", ipc(b), s)
        yield f"send-arrow-{name}", lambda n=name, b=batch: check_send_file(ringway, folder, n, b)
    table = ints_batch(2000)
    rows = rows_of(table)
    for codec in ("lz4", "zstd"):
        yield f"recv-{codec}", lambda c=codec: check_recv(ringway, "arrow", ipc(table, compression=c), rows)
    old = {"metadata_version": pa.ipc.MetadataVersion.V4}
    yield "recv-metadata-v4", lambda: check_recv(ringway, "arrow", ipc(table, **old), rows)
    legacy = ipc(table, use_legacy_format=True)
    yield "recv-legacy-framing", lambda: check_recv(ringway, "arrow", legacy, rows)
    yield "send-split", lambda: check_split(ringway, folder)
    yield "send-control", lambda: check_send_control(ringway, folder)
    yield "recv-control", lambda: check_recv_control(ringway)
    yield "recv-cut", lambda: check_cut(ringway)


def check_send(ringway, folder, wire_type, rows, expected):
    path = os.path.join(folder, f"{wire_type}.ndjson")
    with open(path, "w", encoding="utf-8") as lines:
        lines.write(json.dumps({"data": rows}) + "\n")
    [(kind, batch)] = run_send(ringway, wire_type, path)
    assert kind == BATCH
    assert batch.schema.equals(expected.schema), f"{batch.schema} is not {expected.schema}"
    assert batch.equals(expected), f"{rows_of(batch)} is not {rows_of(expected)}"


def check_send_file(ringway, folder, name, batch):
    path = os.path.join(folder, f"{name}.arrow")
    with pa.ipc.new_file(path, batch.schema) as writer:
        writer.write_batch(batch)
    frames = run_send(ringway, "arrow", path)
    got = pa.Table.from_batches([batch for _, batch in frames], schema=batch.schema)
    assert got.schema.equals(batch.schema), f"{got.schema} is not {batch.schema}"
    # As text, since NaN is not equal to itself.
    assert repr(got.to_pylist()) == repr(batch.to_pylist()), f"{got} is not {batch}"


def check_recv(ringway, wire_type, body, rows):
    lines, code, errors = run_recv(ringway, wire_type, [frame(BATCH, body), frame(CLOSE)])
    assert lines == [{"data": rows}, {"end": "closed"}], f"{lines} is not {rows} ({errors})"[:2000]
    assert code == 0, f"exit code {code}"


def check_split(ringway, folder):
    """A peer with the window of version 1 gets more rows than fit it in pieces."""
    table = ints_batch(5000)
    path = os.path.join(folder, "split.arrow")
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_batch(table)
    frames = run_send(ringway, "arrow", path)
    sizes = [batch.num_rows for _, batch in frames]
    assert sizes == [1024, 1024, 1024, 1024, 904], sizes
    assert pa.Table.from_batches([batch for _, batch in frames]).equals(pa.Table.from_batches([table]))


def check_send_control(ringway, folder):
    path = os.path.join(folder, "control.ndjson")
    with open(path, "w", encoding="utf-8") as lines:
        lines.writelines(json.dumps(line) + "\n" for line, _ in CONTROL)
    sent = [frame(kind, body) for kind, body in run_send(ringway, "int64", path)]
    assert sent == [expected for _, expected in CONTROL], sent


def check_recv_control(ringway):
    lines, code, _ = run_recv(ringway, "int64", [bytes_ for _, bytes_ in CONTROL] + [frame(CLOSE)])
    assert lines == [line for line, _ in CONTROL] + [{"end": "closed"}], lines
    assert code == 0


def check_cut(ringway):
    """A stream that ends without a Close is never a success."""
    lines, code, _ = run_recv(ringway, "arrow", [frame(BATCH, ipc(ints_batch(2)))])
    assert lines[0] == {"data": [[0], [1]]} and lines[-1]["end"] == "error", lines
    assert code == 1, f"exit code {code}"


def main():
    ringway, wanted = os.path.abspath(sys.argv[1]), sys.argv[2:]
    failed = ran = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, check in cases(ringway, folder):
            if wanted and not any(part in name for part in wanted):
                continue
            ran += 1
            try:
                check()
            except Exception as error:
                failed += 1
                print(f"FAILED {name}: {type(error).__name__}: {error}", flush=True)
    print(f"{ran - failed} of {ran} cases agree with pyarrow {pa.__version__}")
    sys.exit(1 if failed or not ran else 0)


if __name__ == "__main__":
    main()
