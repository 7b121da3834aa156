"""Tensors on a CUDA device: addresses, streams and workspaces, with a libcuda.so.1 that computes nothing."""
from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest
from conftest import HERE

FAKE = os.environ.get("FAGEN_FAKE_CUDA", "")
pytestmark = pytest.mark.skipif(not os.path.exists(os.path.join(FAKE, "libcuda.so.1")), reason="no fake libcuda.so.1: FAGEN_FAKE_CUDA")

HEAD = """
import ctypes as C, sys
import fagen
fake = C.CDLL("libcuda.so.1")
fake.fagen_fake_stream.restype = C.c_void_p
fake.fagen_fake_query.restype = C.c_uint64

class Array:
    def __init__(self, address, shape, stream=None, strides=None, typestr="<f2", readonly=False):
        self.__cuda_array_interface__ = {"shape": shape, "typestr": typestr, "data": (address, readonly), "strides": strides, "version": 3,
                                         "stream": stream}

def arrays(*shape, **more):
    return [Array((i + 1) << 28, shape, **more) for i in range(4)]
"""


def run(code):
    env = {**os.environ, "LD_LIBRARY_PATH": FAKE, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "FAGEN_DEVICE": ""}
    env.pop("FAGEN_DEVICE")
    done = subprocess.run([sys.executable, "-c", HEAD + textwrap.dedent(code)], capture_output=True, text=True, env=env, cwd=HERE)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")


def test_addresses_and_streams_arrive():
    told = run("""
        q, k, v, o = arrays(2, 512, 8, 128)
        fagen.attention(q, k, v, out=o)
        print(hex(fake.fagen_fake_query()), fake.fagen_fake_stream())
        fagen.attention(q, k, v, out=o, stream=77)
        print(fake.fagen_fake_stream())
        fagen.attention(*arrays(2, 512, 8, 128, stream=9)[:3], out=o)
        print(fake.fagen_fake_stream())
        fagen.attention(q, k, v, out=o, stream=1)  # the legacy default stream, by the number that interfaces give it
        print(fake.fagen_fake_stream())
        print("sm_80" in fagen.explain(q, k, v))
        """)
    assert told[:5] == ["0x10000000 None", "77", "9", "None", "True"]


def test_other_streams_are_refused():
    told = run("""
        q, k = arrays(2, 512, 8, 128, stream=5)[0], arrays(2, 512, 8, 128, stream=6)[1]
        try:
            fagen.attention(q, k, k, out=arrays(2, 512, 8, 128)[3])
        except fagen.InvalidArgument as e:
            print(e)
        """)
    assert told[0] == "streams of the inputs are 5 and 6; accepted: one, or stream=, which waits for all"


def test_a_workspace_for_each_stream_grows_and_is_kept():
    told = run("""
        ctx = fagen.context("cuda:0")
        n = 1 << 17
        a, b = ctx.workspace(1, n), ctx.workspace(2, n)
        print(a.address != b.address, ctx.workspace(1, n // 2) is a, ctx.workspace(1, n + 1).size >= 2 * n, ctx.workspace(1, 1) is not a)
        """)
    assert told[0] == "True True True True"


def test_decode_brings_its_workspace():
    told = run("""
        q, o = arrays(4, 1, 8, 128)[0], arrays(4, 1, 8, 128)[3]
        k = Array(2 << 28, (64, 16, 8, 128))
        n, table = Array(5 << 28, (4,), typestr="<i4"), Array(6 << 28, (4, 16), typestr="<i4")
        fagen.varlen_attention(q, k, k, seqlens_k=n, page_table=table, out=o, stream=3)
        ctx = fagen.context(None)
        print(list(ctx._workspaces), fake.fagen_fake_stream())
        """)
    assert told[0] in ("[(3, 0)] 3", "[] 3")


def test_capture_is_refused_where_nothing_is_prepared():
    told = run("""
        fake.fagen_fake_capturing(1)
        try:
            fagen.attention(*arrays(2, 512, 8, 128)[:3], out=arrays(2, 512, 8, 128)[3])
        except fagen.CaptureError as e:
            print("refused")
        """)
    assert told[0] == "refused"


def test_ten_thousand_calls_leak_nothing():
    told = run("""
        import resource
        q, k, v, o = arrays(2, 512, 8, 128)
        for n in (1000, 10000):
            for _ in range(n):
                fagen.attention(q, k, v, out=o)
            print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        """)
    assert int(told[1]) - int(told[0]) < 1024, "KiB"


def test_tensors_of_pytorch():
    """Those of the CPU, which pass for those of a device: addresses, the current stream, the device that is current."""
    pytest.importorskip("torch")
    told = run("""
        import contextlib, torch
        from fagen._torch_ops import dense
        view = dense.view
        dense.view = lambda name, x: view(name, x)._replace(device="cuda:1")
        torch.Tensor.get_device = lambda self: 1
        current, entered = [0], []
        torch._C._cuda_getDevice = lambda: current[0]
        torch._C._cuda_getCurrentRawStream = lambda index: 70 + index
        torch.cuda.is_current_stream_capturing = lambda: False

        @contextlib.contextmanager
        def device(index):
            entered.append(index)
            current[0] = index
            yield
            current[0] = 0

        torch.cuda.device = device
        q, k, v = (torch.zeros(2, 512, 8, 128).half() for _ in range(3))
        fagen.attention(q, k, v)
        print(fake.fagen_fake_query() == q.data_ptr(), fake.fagen_fake_stream(), entered)
        torch.ops.fagen.attention(k, q, v, 0.0, (), "")
        print(fake.fagen_fake_query() == k.data_ptr(), fake.fagen_fake_stream(), entered)
        print(list(fagen._context._contexts))
        """)
    assert told[:3] == ["True 71 [1]", "True 71 [1, 1]", "['cuda:1']"]
