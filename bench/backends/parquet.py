"""Parquet by pyarrow: a row group for each group of rows, each group that a gather touches read once.
No dictionary encoding, which records that hardly repeat only slow down."""

import pyarrow.parquet as pq

from columnar import about, columns_of, gather_groups, group_rows, table_of


def prepare_write(job):
    workload = job.workload
    workload.items
    compression = "none" if job.variant == "raw" else "zstd"

    def run():
        pq.write_table(
            table_of(workload), job.target + "/records.parquet", compression=compression,
            row_group_size=group_rows(workload), use_dictionary=False, write_statistics=False,
        )

    return run


def open_store(job):
    workload = job.workload
    file = pq.ParquetFile(job.target + "/records.parquet", memory_map=True)

    def read_group(group):
        return columns_of(workload, file.read_row_group(group))

    return {"fresh": gather_groups(workload, read_group, group_rows(workload))}
