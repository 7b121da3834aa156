"""What was measured on: the device, its driver, the libraries, the clocks."""
import datetime
import platform
import subprocess
import sys

CLOCKS = ("clocks.sm", "clocks.mem", "temperature.gpu", "power.draw", "clocks_event_reasons.active")


def smi(fields):
    """{field: text} of the first GPU, or why there is none."""
    try:
        run = subprocess.run(["nvidia-smi", "-i", "0", "--query-gpu=" + ",".join(fields), "--format=csv,noheader"],
                             capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired) as e:
        return {"error": str(e)}
    values = [v.strip() for v in run.stdout.strip().splitlines()[0].split(",")] if run.returncode == 0 and run.stdout.strip() else []
    return dict(zip(fields, values)) if len(values) == len(fields) else {"error": (run.stderr or run.stdout).strip()}


def clocks():
    return smi(CLOCKS)


def described():
    import torch
    told = {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"), "command": sys.argv,
            "python": platform.python_version(), "torch": torch.__version__, "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version(), "device": torch.cuda.get_device_name(),
            "multiprocessors": torch.cuda.get_device_properties(0).multi_processor_count}
    told["driver"] = smi(("driver_version",)).get("driver_version", "?")
    try:
        import triton
        told["triton"] = triton.__version__
    except ImportError:
        pass
    return told
