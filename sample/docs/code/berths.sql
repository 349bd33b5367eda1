-- Berths, and who lies where. Times are UTC.

CREATE TABLE berth (
    number      integer PRIMARY KEY CHECK (number BETWEEN 101 AND 399),
    quay        text    NOT NULL,
    depth_m     numeric(4, 1) NOT NULL,
    shore_power boolean NOT NULL DEFAULT false
);

CREATE TABLE stay (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    berth    integer NOT NULL REFERENCES berth (number),
    vessel   text    NOT NULL,
    draught  numeric(4, 1) NOT NULL,
    arrives  timestamptz NOT NULL,
    leaves   timestamptz NOT NULL,
    CHECK (arrives < leaves)
);

/* Two vessels in one berth at one time:
   the question that the planner asks every morning. */
SELECT a.berth,
       a.vessel AS first_vessel,
       b.vessel AS second_vessel,
       greatest(a.arrives, b.arrives) AS from_when,
       least(a.leaves, b.leaves)      AS until_when
FROM stay AS a
JOIN stay AS b
  ON a.berth = b.berth
 AND a.id < b.id
 AND a.arrives < b.leaves
 AND b.arrives < a.leaves
ORDER BY from_when, a.berth;

-- Vessels that draw more than their berth has, less half a metre.
SELECT s.vessel, s.berth, s.draught, b.depth_m
FROM stay AS s
JOIN berth AS b ON b.number = s.berth
WHERE s.draught > b.depth_m - 0.5
ORDER BY s.draught - b.depth_m DESC;
