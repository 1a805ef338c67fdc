"""Reading .parquet files into a `Table`, with pyarrow."""

from alim_keras.data.messages import one_line
from alim_keras.data.tables.table import Column
from alim_keras.data.tables.table import Table
from alim_keras.errors import DataError
from alim_keras.errors import EnvironmentLacksError


def read(path, findings):
    """Returns the `Table` of a Parquet file; columns are read when needed."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise EnvironmentLacksError(
            f"{path}: reading Parquet needs the package pyarrow; pip install "
            "pyarrow, or save the table as .csv or .jsonl"
        ) from error
    try:
        file = pyarrow.parquet.ParquetFile(path)
        names, count = file.schema_arrow.names, file.metadata.num_rows
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise DataError(
            f"{path}: is no sound Parquet file ({one_line(error)})"
        ) from error
    if not count:
        raise DataError(f"{path}: the table is empty, it holds no rows")

    def load(name):
        try:
            cells = file.read([name]).column(0).to_pylist()
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            raise DataError(
                f"{path}: the column {name!r} cannot be read "
                f"({one_line(error)})"
            ) from error
        return Column.of(cells)

    return Table(path, tuple(names), load, count)
