-- The flights example as SQL for DuckDB: what the job must give, computed by another engine.
--
-- Run by scripts/flights-expected, in the folder of the data. Windows are aligned to the epoch
-- and half open, [window_start, window_end); all times are milliseconds. A mean is the quotient
-- of two integers, rounded once to float64, so that it can be compared exactly.

SET threads = 1;
SET preserve_insertion_order = true;

CREATE MACRO hour_ms() AS 3600000::BIGINT;
CREATE MACRO aligned(time_ms, step_ms) AS time_ms - (time_ms % step_ms);

CREATE TABLE departure AS
SELECT event_time, carrier, origin, dep_delay
FROM 'flights.parquet'
WHERE dep_delay IS NOT NULL;

-- A. Tumbling windows of one hour by carrier and origin.
CREATE TABLE hourly AS
SELECT
    aligned(event_time, hour_ms()) AS window_start,
    aligned(event_time, hour_ms()) + hour_ms() AS window_end,
    carrier,
    origin,
    count(*) AS n,
    sum(dep_delay)::BIGINT AS total_delay,
    sum(dep_delay)::DOUBLE / count(*)::DOUBLE AS mean_delay,
    max(dep_delay) AS max_delay
FROM departure
GROUP BY ALL
ORDER BY window_start, carrier, origin;

-- B. Sliding windows of 24 hours every 6 hours by carrier and origin. Each departure is in four
-- windows, those that start before the first departure included.
CREATE TABLE daily AS
SELECT
    aligned(event_time, 6 * hour_ms()) - back * 6 * hour_ms() AS window_start,
    aligned(event_time, 6 * hour_ms()) - back * 6 * hour_ms() + 24 * hour_ms() AS window_end,
    carrier,
    origin,
    count(*) AS n,
    sum(dep_delay)::BIGINT AS total_delay,
    sum(dep_delay)::DOUBLE / count(*)::DOUBLE AS mean_delay,
    max(dep_delay) AS max_delay
FROM departure, (SELECT unnest([0, 1, 2, 3])::BIGINT AS back)
GROUP BY ALL
ORDER BY window_start, carrier, origin;

-- C. Departures and weather in one stream, in tumbling windows of one hour by origin and kind.
CREATE TABLE union_hourly AS
WITH observed AS (
    SELECT event_time, origin, 'departure' AS kind, dep_delay AS value
    FROM departure
    UNION ALL
    SELECT event_time, origin, 'weather' AS kind, temp_hundredths AS value
    FROM 'weather.parquet'
    WHERE temp_hundredths IS NOT NULL
)
SELECT
    aligned(event_time, hour_ms()) AS window_start,
    aligned(event_time, hour_ms()) + hour_ms() AS window_end,
    origin,
    kind,
    count(*) AS n,
    sum(value)::BIGINT AS total,
    max(value) AS max
FROM observed
GROUP BY ALL
ORDER BY window_start, origin, kind;
