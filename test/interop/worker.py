"""The Python side of `npm run interop`: a real loaderx that does what it is asked.

One request is one line of JSON on stdin, its answer one line on stdout. Bulk data travels in files.
The argument names the module with the operations: loaderx_2_4 or loaderx_2_8.

    {"op": "read", ...}  ->  {"result": ...}
                         or  {"error": {"type": "ZrecordError", "code": -8, "message": "..."}}
"""

import importlib
import json
import os
import sys
import traceback


def failure(error):
    code = getattr(error, "code", None)
    return {
        "type": type(error).__name__,
        "code": code if isinstance(code, int) else None,
        "message": str(error),
        "trace": traceback.format_exc(),
    }


def main():
    # Whatever a library prints goes to stderr: stdout carries answers only.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    operations = importlib.import_module(sys.argv[1]).OPERATIONS
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"result": operations[request.pop("op")](**request)}
        except Exception as error:  # whatever happens is the answer
            answer = {"error": failure(error)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
