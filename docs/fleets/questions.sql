-- Questions to a folder of NDJSON files, one a host or a part of a list:  duckdb < questions.sql
-- The summary lines have another `type`; keys that no line has are NULL.
CREATE OR REPLACE VIEW targets AS
SELECT parse_filename(filename, true) AS host, *
FROM read_json('audit/*.ndjson', format = 'newline_delimited', filename = true, union_by_name = true,
               maximum_object_size = 268435456,
               columns = {type: 'VARCHAR', path: 'VARCHAR', member: 'VARCHAR', status: 'VARCHAR', verdict: 'VARCHAR',
                          process: 'STRUCT(pid BIGINT, command VARCHAR, deleted BOOLEAN)',
                          elf: 'STRUCT(build_id VARCHAR, machine VARCHAR)',
                          product: 'STRUCT(name VARCHAR, version VARCHAR)',
                          optimization: 'STRUCT(level VARCHAR, complete BOOLEAN, strength VARCHAR, reason VARCHAR)',
                          findings: 'STRUCT(rule VARCHAR, severity VARCHAR, status VARCHAR, message VARCHAR)[]'})
WHERE type = 'target';

-- How much of the fleet is at which level, and how firmly that is known.
SELECT optimization.level AS level, optimization.strength AS strength, count(*) AS targets, count(DISTINCT host) AS hosts
FROM targets GROUP BY ALL ORDER BY targets DESC;

-- Builds that run on few hosts only: the one that was built by hand.
SELECT product.name AS product, elf.build_id AS build_id, optimization.level AS level, count(DISTINCT host) AS hosts
FROM targets WHERE elf.build_id IS NOT NULL GROUP BY ALL ORDER BY hosts, product LIMIT 20;

-- What is wrong, by rule.
SELECT finding.rule AS rule, finding.severity AS severity, count(*) AS targets, count(DISTINCT host) AS hosts
FROM (SELECT host, unnest(findings) AS finding FROM targets)
WHERE finding.status IN ('violation', 'undetermined') GROUP BY ALL ORDER BY targets DESC;
