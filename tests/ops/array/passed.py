import numpy as np

from declare import op, refuses
from domains import normal, where

op("PreventGradient", lambda x: x, no_gradient="to ask for it is an error, which gradient_test.py looks at")
op("CheckNumerics", lambda x: x, domain=where(normal, np.isfinite), given=dict(message=""), attrs=dict(message=["weights"]))
op("PrintV2", None, lambda d: [d("input", ())], attrs=dict(output_stream=["log(info)"]),
   no_oracle="it has no outputs; print_test.py reads its lines")

for bad, name in ((np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "-infinity")):
    for dtype in (np.float16, np.float32, np.float64):
        refuses("CheckNumerics", [np.array([[1, 2], [bad, np.nan]], dtype)], "the weights", name, "[1, 0]", "[2, 2]", message="the weights")
for at in (4095, 4096, 8191, 99_990):  # threads scan blocks of 4096
    late = np.ones(100_000, np.float32)
    late[at:] = np.nan
    refuses("CheckNumerics", [late], f"[{at}]", message="m")
    late[at + 1:] = 1
    refuses("CheckNumerics", [late], f"[{at}]", message="m")
text = np.array(b"text", object)
refuses("PrintV2", [np.array([b"a", b"b"], object)], "input", "[2]")
for stream in ("stdin", "log(debug)", "file://", ""):
    refuses("PrintV2", [text], "output_stream", f'"{stream}"', output_stream=stream)
refuses("PrintV2", [text], "/nonexistent/file", output_stream="file:///nonexistent/file")
