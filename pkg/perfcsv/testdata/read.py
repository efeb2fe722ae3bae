"""Prints some columns of a perf.csv, as pandas reads them, as JSON."""
import json
import sys

import pandas

frame = pandas.read_csv(sys.argv[1], dtype=str, keep_default_na=False)
columns = ["model", "reason", "args", "run_id", "performance", "finished_at"]
json.dump(frame[columns].to_dict(orient="records"), sys.stdout)
