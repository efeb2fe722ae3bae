"""Prints some columns of a perf.csv, as pandas reads them, as JSON."""
import json
import sys

import pandas

frame = pandas.read_csv(sys.argv[1], dtype=str, keep_default_na=False)
columns = ["model", "reason", "args", "run_id", "performance", "finished_at"]
rows = frame[columns].to_dict(orient="records")

# The way that docs/perf-csv.md recommends.
perf = pandas.read_csv(sys.argv[1], keep_default_na=False, na_values={"performance": [""]},
                       float_precision="round_trip", dtype={"run_id": str, "n_gpus": str})
for row, value in zip(rows, perf.performance):
    row["value"] = repr(float(value))
json.dump(rows, sys.stdout)
