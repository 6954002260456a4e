"""Audits a list of artefacts with Spark and keeps the results as a table.

    spark-submit --files flagaudit.toml spark_audit.py LIST TABLE [PARTITIONS]

LIST names artefacts one a line: files, packages, images or directories that every worker can read. Each partition is one
flagaudit, which reads its part of the list as it comes and writes a line a target. TABLE becomes a Parquet table.
"""

import os
import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, from_json

COLUMNS = """
    type STRING, path STRING, member STRING, status STRING, verdict STRING,
    elf STRUCT<build_id: STRING, machine: STRING>,
    product STRUCT<name: STRING, version: STRING>,
    optimization STRUCT<level: STRING, complete: BOOLEAN, strength: STRING, reason: STRING>,
    findings ARRAY<STRUCT<rule: STRING, severity: STRING, status: STRING, message: STRING>>
"""


def main(listing, table, partitions=16):
    spark = SparkSession.builder.appName("flagaudit").getOrCreate()
    # A bad target is a line with the status `failed` and no reason to stop, so the exit status is not looked at.
    command = os.environ.get("FLAGAUDIT", "flagaudit") + " check -q --jobs 1 -f ndjson --files-from -"
    lines = spark.sparkContext.textFile(listing, int(partitions)).pipe(command)
    frame = spark.createDataFrame(lines.map(lambda line: (line,)), "line STRING")
    frame = frame.select(from_json(col("line"), COLUMNS).alias("t")).select("t.*").where("type = 'target'")
    # gzip needs no native library, which not every Java runtime can load.
    frame.drop("type").write.mode("overwrite").parquet(table, compression="gzip")
    spark.read.parquet(table).groupBy("verdict", "optimization.level").count().orderBy("verdict", "level").show()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
