"""fagen through its C ABI, for the benchmarks: ctypes only, PyTorch tensors in and out.

Not a binding for applications, which is the package in python/: just enough of fagen.h to launch and to explain, and of bench/lever.h to
launch a config by its name. The struct layouts are read out of runtime/fagen.h. PyTorch is needed for tensors on a GPU only: contexts on
the simulator do without.
"""
import ctypes as C
import importlib.util
import os

from common import bits

HERE = os.path.dirname(os.path.abspath(__file__))


def layouts():
    """Structs and numbers of runtime/fagen.h, as the Python package has them (python/generate_abi.py)."""
    spec = importlib.util.spec_from_file_location("generate_abi", os.path.join(HERE, "..", "..", "python", "generate_abi.py"))
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    return generate.load(os.path.join(HERE, "..", "..", "runtime", "fagen.h"), os.path.join(HERE, "..", "..", "gen", "operands.def"))


abi = layouts()
Problem, Tensor, Args, Options = abi.Problem, abi.Tensor, abi.Args, abi.Options
FP16, BF16, TF32, FP32 = abi.FA_F16, abi.FA_BF16, abi.FA_TF32, abi.FA_F32
NONE, CAUSAL, WINDOW = abi.FA_MASK_NONE, abi.FA_MASK_CAUSAL, abi.FA_MASK_WINDOW
BOTTOM_RIGHT, TOP_LEFT = abi.FA_BOTTOM_RIGHT, abi.FA_TOP_LEFT
FORWARD, BACKWARD = abi.FA_FORWARD, abi.FA_BACKWARD
BROADCAST, BATCH_INVARIANT, DETERMINISTIC = abi.FA_BROADCAST, abi.FA_BATCH_INVARIANT, abi.FA_DETERMINISTIC  # of flags
LENGTHS, PAGES = abi.FA_FEATURE_LENGTHS, abi.FA_FEATURE_PAGES  # of Problem.features
FORMATS = {"e4m3": (abi.FA_E4M3, 1), "e5m2": (abi.FA_E5M2, 1), "s8": (abi.FA_S8, 1),
           "q8_0": (abi.FA_Q8_0, 34), "q4_0": (abi.FA_Q4_0, 18)}  # of K and V: fa_dtype, bytes of a block
DTYPES = {"fp16": FP16, "bf16": BF16, "tf32": TF32, "fp32": FP32}
MASKS = {"none": NONE, "causal": CAUSAL, "window": WINDOW}
DIAGONALS = {"bottom-right": BOTTOM_RIGHT, "top-left": TOP_LEFT}


class Error(RuntimeError):
    pass


def library(name):
    """Where lib<name>.so lies: FAGEN_LIBRARY or its folder, else a build folder of this tree."""
    given = os.environ.get("FAGEN_LIBRARY")
    places = [given, os.path.join(os.path.dirname(given), f"lib{name}.so")] if given else []
    places += [os.path.join(HERE, "..", "..", "build", b, "lib", f"lib{name}.so") for b in ("portable", "release")]
    found = [p for p in places if os.path.basename(p).startswith(f"lib{name}.so") and os.path.exists(p)]
    if not found:
        raise Error(f"lib{name}.so not found: build the portable preset, or set FAGEN_LIBRARY")
    return found[0]


def load(path):
    lib = C.CDLL(path)
    lib.fa_last_error.restype = C.c_char_p
    lib.fa_version.restype = C.c_uint32
    lib.fa_destroy.restype = None
    return lib


def check(lib, status):
    if status:
        raise Error(f"status {status}: {lib.fa_last_error().decode(errors='replace')}")


def tensor(t):
    """The struct of [b, s, h, d], or of packed rows [rows, h, d]."""
    strides = (0, *t.stride()) if t.dim() == 3 else t.stride()
    return Tensor(t.data_ptr(), *strides[:3])


def blocks(t, size):
    """The struct of bytes [b, s, h, bytes of a row] that are blocks of `size` bytes."""
    return Tensor(t.data_ptr(), *(n // size for n in t.stride()[:3]))


def scale_of(t):
    """What K or V is multiplied by: fp32 [b or 1, hkv or 1], or of tokens [b, s, hkv]."""
    token = t.dim() == 3
    steps = [0 if n == 1 else s for n, s in zip(t.shape, t.stride())]
    return abi.Scale(ptr=t.data_ptr(), dtype=FP32, by=abi.FA_SCALE_TOKEN if token else abi.FA_SCALE_FOLDED, sb=steps[0],
                     ss=steps[1] if token else 0, sh=steps[-1])


def score_value(v):
    """What a launch gives for an operand of its score program: a tensor whose dimensions may be expanded, Bits (common/bits.py), or a
    number."""
    out = abi.ScoreValue(size=C.sizeof(abi.ScoreValue))
    words = v.words if isinstance(v, bits.Bits) else v
    if not hasattr(words, "data_ptr"):
        out.scalar = v
        return out
    out.ptr = words.data_ptr()
    for i, (n, step) in enumerate(zip(words.shape, words.stride())):
        out.extent[i], out.stride[i] = n, step
    if words is not v:
        out.extent[words.dim() - 1] = v.n
    return out


class Plan:
    """A config that was compiled for a problem: what Fagen.plan() gives and Fagen.launch() takes."""

    def __init__(self, handle, config, told):
        self.handle, self.config = handle, config
        self.told = {k: int(v) if v.lstrip("-").isdigit() else v for k, v in (word.split("=", 1) for word in told.split())}


class Fagen:
    """One context: on the current CUDA device, or on the device that is named ("sim:sm_90a"). lever: configs can be named. template_dir:
    a folder whose templates go before those of the library. path: the library itself, for one of another version beside this tree's.
    lends: a workspace, to launches that bring none."""

    def __init__(self, lever=False, device=None, cache_dir=None, template_dir=None, path=None, lends=True):
        self.lib = load(path or library("fagen_lever" if lever else "fagen"))
        self.path = self.lib._name
        if device is None:
            import torch
            torch.cuda.init()
            torch.zeros(1, device="cuda")  # the primary context is current from here on
        options = Options(size=C.sizeof(Options), log_level=1, device=device.encode() if device else None,
                          cache_dir=cache_dir.encode() if cache_dir is not None else None,
                          template_dir=template_dir.encode() if template_dir else None,
                          workspace=abi.FA_WORKSPACE_CONTEXT if lends else abi.FA_WORKSPACE_CALLER)
        self.ctx = C.c_void_p()
        self.check(self.lib.fa_create(C.byref(self.ctx), C.byref(options)))

    def close(self):
        self.lib.fa_destroy(self.ctx)
        self.ctx = C.c_void_p()

    def check(self, status):
        check(self.lib, status)

    def version(self):
        v = self.lib.fa_version()
        return f"{v // 10000}.{v // 100 % 100}.{v % 100}"

    def args(self, q, k, v, o, mask=NONE, lse=None, window=(-1, -1), diagonal=BOTTOM_RIGHT, scale=0.0, tf32=False, lengths=None,
             table=None, sk=None, first_q=None, first_k=None, sq=None, flags=0, score=None, values=(), kv=None, k_scale=None, v_scale=None):
        """Arguments of a launch for tensors [b, s, h, d]; keep them, and launch many times. They hold the tensors, in a.holds: a tensor
        that nobody holds is memory that the next capture of a graph gives back to the driver. lengths: int32 [b], keys of each sequence.
        table: int32 [b, n], then k and v are pages [pages, tokens, h, d], and sk is the most that a length may be.
        first_q: int32 [b + 1], then q and o are packed rows [rows, h, d], and sq is the most that a sequence has; first_k likewise of k
        and v, beside sk. score: of score(); values: a tensor, Bits or a number for each of its operands. kv: a name of FORMATS, then the
        last dimension of k and v is bytes; k_scale, v_scale: as scale_of() takes them."""
        import torch
        kinds = {torch.float16: FP16, torch.bfloat16: BF16, torch.float32: TF32 if tf32 else FP32}
        a = Args(size=C.sizeof(Args), dtype=kinds[q.dtype], o_dtype=FP32 if o.dtype == torch.float32 and q.dtype != o.dtype else 0,
                 d=q.shape[-1], dv=v.shape[-1], b=q.shape[0], hq=q.shape[-2], hkv=k.shape[-2], sq=sq or q.shape[1], sk=sk or k.shape[1],
                 mask=mask, window_left=window[0], window_right=window[1], diagonal=diagonal, scale=scale, flags=flags)
        if kv:
            a.kv_dtype, a.dv = FORMATS[kv][0], o.shape[-1]
        if k_scale is not None:
            a.k_scale = scale_of(k_scale)
        if v_scale is not None:
            a.v_scale = scale_of(v_scale)
        if first_q is not None:
            a.cu_seqlens_q, a.total_q, a.b = first_q.data_ptr(), q.shape[0], first_q.shape[0] - 1
        if first_k is not None:
            a.cu_seqlens_k, a.total_k = first_k.data_ptr(), k.shape[0]
        a.holds = [q, k, v, o, lse, lengths, table, first_q, first_k, k_scale, v_scale, *values]
        for name, t in (("q", q), ("k", k), ("v", v), ("o", o)):
            setattr(a, name, blocks(t, FORMATS[kv][1]) if kv and name in "kv" else tensor(t))
            if any(s == 0 and n > 1 for s, n in zip(t.stride()[:-1], t.shape[:-1])):  # an expanded tensor
                a.flags |= BROADCAST
        if lse is not None:
            a.lse = lse.data_ptr()
        if score is not None:
            a.score, a.score_value_count = score, len(values)
            a.kept = (abi.ScoreValue * len(values))(*map(score_value, values))  # lives as long as the arguments
            a.score_values = C.cast(a.kept, C.c_void_p)
        if lengths is not None:
            a.seqlens_k = lengths.data_ptr()
        if table is not None:
            a.page_table, a.page_table_stride, a.pages, a.page_size = table.data_ptr(), table.stride(0), k.shape[0], k.shape[1]
            a.flags |= BROADCAST if table.stride(0) == 0 and table.shape[0] > 1 else 0
        return a

    def gradient_args(self, q, k, v, o, lse, grad_o, grad_q, grad_k, grad_v, **given):
        """Arguments of a backward for tensors [b, s, h, d] and LSE [b, h, s], of packed rows [h, rows]; o and lse as a forward wrote them.
        given: as of args()."""
        a = self.args(q, k, v, o, lse=lse, **given)
        a.op = BACKWARD
        a.holds += [grad_o, grad_q, grad_k, grad_v]
        for name, t in (("grad_o", grad_o), ("grad_q", grad_q), ("grad_k", grad_k), ("grad_v", grad_v)):
            setattr(a, name, tensor(t))
        return a

    def score(self, text):
        """The program of a text, for args()."""
        out = C.c_void_p()
        self.check(self.lib.fa_score_create(self.ctx, text.encode(), C.byref(out)))
        return out

    def launch(self, args, plan=None, stream=None):
        """On torch's current stream. plan None: what fa_launch() chooses."""
        if stream is None:
            import torch
            stream = torch.cuda.current_stream().cuda_stream
        if plan is None:
            self.check(self.lib.fa_launch(self.ctx, C.byref(args), C.c_void_p(stream)))
        else:
            self.check(self.lib.fa_lever_launch(self.ctx, plan.handle, C.byref(args), C.c_void_p(stream)))

    def workspace(self, args, plan=None):
        """Bytes that a launch needs in args.workspace."""
        n = C.c_size_t()
        if plan is None:
            self.check(self.lib.fa_workspace_size(self.ctx, C.byref(args), C.byref(n)))
        else:
            self.check(self.lib.fa_lever_workspace(self.ctx, plan.handle, C.byref(args), C.byref(n)))
        return n.value

    def give_workspace(self, args, plan=None):
        """Gives the launch what workspace it needs, its counters zeroed, on torch's current stream. The arguments hold it, and it is
        returned."""
        import torch
        n = self.workspace(args, plan)
        space = torch.empty(n, dtype=torch.uint8, device="cuda")
        if n:
            args.workspace, args.workspace_size = space.data_ptr(), n
            args.holds = [*getattr(args, "holds", ()), space]
            self.check(self.lib.fa_workspace_init(self.ctx, C.c_void_p(args.workspace), C.c_size_t(n),
                                                  C.c_void_p(torch.cuda.current_stream().cuda_stream)))
        return space

    def problem_of(self, args):
        """The problem that a launch derives from its arguments."""
        p = Problem(size=C.sizeof(Problem))
        self.check(self.lib.fa_problem_of(C.byref(args), C.byref(p)))
        return p

    def prepare(self, problem):
        """Compiles what a launch of the problem runs. Legal on any thread; ctypes lets the others run meanwhile."""
        self.check(self.lib.fa_prepare(self.ctx, C.byref(problem)))

    def explain(self, args=None, problem=None):
        n = C.c_size_t()
        of = (self.ctx, C.byref(problem) if problem else None, C.byref(args) if args else None)
        self.check(self.lib.fa_explain_size(*of, C.byref(n)))
        text = C.create_string_buffer(n.value)
        self.check(self.lib.fa_explain(*of, text, n))
        return text.value.decode()

    # The lever's part.

    def problem(self, **fields):
        """dtype, mask by name or number; d, dv, b, hq, hkv, sq, sk."""
        fields["dtype"] = DTYPES.get(fields["dtype"], fields["dtype"])
        fields["mask"] = MASKS.get(fields.get("mask", 0), fields.get("mask", 0))
        return Problem(size=C.sizeof(Problem), **fields)

    def pick(self, problem, text):
        """The whole config that text, which may leave tunables out, names for the problem."""
        out = C.create_string_buffer(512)
        self.check(self.lib.fa_lever_pick(self.ctx, C.byref(problem), text.encode(), out, C.c_size_t(512)))
        return out.value.decode()

    def rank(self, problem, limit=0, family=None):
        """Configs that fit, the model's fastest first."""
        out = C.create_string_buffer(4 << 20)
        self.check(self.lib.fa_lever_rank(self.ctx, C.byref(problem), family.encode() if family else None, C.c_int(limit), out,
                                          C.c_size_t(4 << 20)))
        return out.value.decode().split()

    def plan(self, problem, config):
        """Compiles a whole config. Legal on any thread; ctypes lets the others run meanwhile."""
        told, handle = C.create_string_buffer(256), C.c_void_p()
        self.check(self.lib.fa_lever_plan(self.ctx, C.byref(problem), config.encode(), C.byref(handle), told, C.c_size_t(256)))
        return Plan(handle, config, told.value.decode())


def explained(text):
    """What fa_explain tells, by the first word of its lines: {"config": .., "origin": .., "why": .., "resources": [..], ...}."""
    out = {}
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        rest = rest.strip()
        if word in out:
            out[word] += "; " + rest
        elif word:
            out[word] = rest
    why = out.get("why", "")
    origins = {"measured record": "tuned", "default table": "shipped", "modelled record": "modelled", "model": "model"}
    out["origin"] = origins.get(why.split(":")[0], why.split(":")[0])
    return out
