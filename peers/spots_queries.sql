-- What users of the WSPR archive ask, as the suite `wspr-queries` runs it: the same text on every system.
-- A query begins at its name; its answer has at most a thousand rows, compared in no order, floats by
-- four decimals (docs/formats/checksums.md).

-- name: band-hour
SELECT band, extract(hour FROM timestamp) AS hour, count(*) AS spots, avg(snr) AS snr
FROM spots GROUP BY 1, 2

-- name: grid-pairs
SELECT substr(grid, 1, 4) AS sender, substr(reporter_grid, 1, 4) AS receiver,
       count(*) AS spots, max(distance) AS km
FROM spots WHERE grid <> '' AND reporter_grid <> ''
GROUP BY 1, 2 ORDER BY spots DESC, sender, receiver LIMIT 100

-- name: best-distance
SELECT callsign, max(distance) AS km, count(*) AS spots
FROM spots GROUP BY callsign ORDER BY km DESC, spots DESC, callsign LIMIT 100

-- name: snr-percentiles
SELECT band, percentile_cont(0.1) WITHIN GROUP (ORDER BY snr) AS low,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY snr) AS median,
       percentile_cont(0.9) WITHIN GROUP (ORDER BY snr) AS high
FROM spots GROUP BY band

-- name: new-stations
SELECT date_trunc('month', seen) AS month, count(*) AS stations
FROM (SELECT callsign, min(timestamp) AS seen FROM spots GROUP BY callsign) AS stations
GROUP BY 1

-- name: reporters
SELECT band, count(DISTINCT reporter) AS reporters FROM spots GROUP BY band

-- name: one-station
SELECT timestamp, reporter, band, snr, distance FROM spots
WHERE callsign = 'UR5IQK' AND timestamp >= TIMESTAMP '2023-02-10 06:00:00'
  AND timestamp < TIMESTAMP '2023-02-10 18:00:00'

-- name: pairs
SELECT callsign, reporter, count(*) AS spots, avg(snr) AS snr
FROM spots GROUP BY callsign, reporter ORDER BY spots DESC, callsign, reporter LIMIT 100

-- name: drift
SELECT version, power, count(*) AS spots, avg(drift) AS drift
FROM spots GROUP BY version, power

-- name: far-per-day
SELECT date_trunc('day', timestamp) AS day, count(*) AS spots, max(distance) AS km
FROM spots WHERE distance >= 10000 GROUP BY 1
