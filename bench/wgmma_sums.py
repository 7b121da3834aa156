"""How wgmma adds up products of 8 bits: random products of one m64n8k32 on a GPU of sm_90a, held against models of the sum.

    python3 bench/wgmma_sums.py [--json FILE]

A model has: bits of fraction kept below the largest exponent, of how many products a sum is made at a time, whether a product's exponent is
that of its value or the sum of its factors', and what the result keeps: all bits of the sum, or so many below its own exponent."""

import argparse
import ctypes
import glob
import json
import sys

import numpy as np

SOURCE = r"""
extern "C" __global__ void product(const uint4 *a, const uint4 *b, const float4 *c, float4 *d) {
  __shared__ __align__(128) uint4 shared[16];
  const unsigned at = (unsigned)__cvta_generic_to_shared(shared);
  if (threadIdx.x < 16) shared[threadIdx.x] = b[blockIdx.x * 16 + threadIdx.x];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  const unsigned long long descriptor = (unsigned long long)((at & 0x3ffff) >> 4) | 8ull << 16 | 16ull << 32;
  const uint4 x = a[blockIdx.x * 128 + threadIdx.x];
  float4 s = c[blockIdx.x * 128 + threadIdx.x];
  asm volatile("wgmma.fence.sync.aligned;" : "+f"(s.x), "+f"(s.y), "+f"(s.z), "+f"(s.w) :: "memory");
  asm volatile("{\n.reg .pred more;\nsetp.eq.b32 more, 0, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n8k32.f32.TYPE.TYPE {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, more, 1, 1;\n}"
      : "+f"(s.x), "+f"(s.y), "+f"(s.z), "+f"(s.w) : "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w), "l"(descriptor));
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(s.x), "+f"(s.y), "+f"(s.z), "+f"(s.w) :: "memory");
  d[blockIdx.x * 128 + threadIdx.x] = s;
}
"""
BLOCKS = 12


def check(result, call):
    if result:
        sys.exit(f"wgmma_sums: {call} is {result}")


def compiled(kind):
    names = ["libnvrtc.so.13", "libnvrtc.so.12"] + sorted(glob.glob("/usr/local/cuda*/lib64/libnvrtc.so.1[0-9]"))
    try:
        import importlib.util
        spec = importlib.util.find_spec("nvidia")
        for place in spec.submodule_search_locations if spec else []:
            names += sorted(glob.glob(f"{place}/*/lib/libnvrtc.so.1[0-9]"))
    except ImportError:
        pass
    for name in names:
        try:
            nvrtc = ctypes.CDLL(name)
            break
        except OSError:
            continue
    else:
        sys.exit("wgmma_sums: no NVRTC")
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    text = SOURCE.replace("TYPE", kind).encode()
    check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, b"sums.cu", 0, None, None), "nvrtcCreateProgram")
    options = (ctypes.c_char_p * 1)(b"--gpu-architecture=sm_90a")
    result = nvrtc.nvrtcCompileProgram(program, 1, options)
    if result:
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        sys.exit(log.value.decode())
    check(nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)), "nvrtcGetCUBINSize")
    image = ctypes.create_string_buffer(size.value)
    check(nvrtc.nvrtcGetCUBIN(program, image), "nvrtcGetCUBIN")
    return image


class Device:
    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        check(self.cuda.cuInit(0), "cuInit")
        check(self.cuda.cuDeviceGet(ctypes.byref(device), 0), "cuDeviceGet")
        check(self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "cuDevicePrimaryCtxRetain")
        check(self.cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
        name = ctypes.create_string_buffer(100)
        self.cuda.cuDeviceGetName(name, 100, device)
        self.name = name.value.decode()

    def run(self, image, inputs, out):
        module, function, places = ctypes.c_void_p(), ctypes.c_void_p(), []
        check(self.cuda.cuModuleLoadData(ctypes.byref(module), image), "cuModuleLoadData")
        check(self.cuda.cuModuleGetFunction(ctypes.byref(function), module, b"product"), "cuModuleGetFunction")
        for x in inputs + [out]:
            at = ctypes.c_uint64()
            check(self.cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(x.nbytes)), "cuMemAlloc")
            check(self.cuda.cuMemcpyHtoD_v2(at, x.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(x.nbytes)), "cuMemcpyHtoD")
            places.append(at)
        given = (ctypes.c_void_p * len(places))(*[ctypes.cast(ctypes.byref(x), ctypes.c_void_p) for x in places])
        check(self.cuda.cuLaunchKernel(function, BLOCKS, 1, 1, 128, 1, 1, 0, None, given, None), "cuLaunchKernel")
        check(self.cuda.cuCtxSynchronize(), "cuCtxSynchronize")
        check(self.cuda.cuMemcpyDtoH_v2(out.ctypes.data_as(ctypes.c_void_p), places[-1], ctypes.c_size_t(out.nbytes)), "cuMemcpyDtoH")
        for at in places:
            self.cuda.cuMemFree_v2(at)


def numbers(kind):
    """Of each code its value, and the exponent that its bits name."""
    fraction, bias = (2, 15) if kind == "e5m2" else (3, 7)
    code = np.arange(256)
    exponent, m = (code & 127) >> fraction, code & ((1 << fraction) - 1)
    value = np.ldexp((m + (exponent > 0) * (1 << fraction)).astype(float), np.maximum(exponent, 1) - bias - fraction)
    return np.where(code & 128, -value, value), np.maximum(exponent, 1) - bias


def draw(rng, kind, sizes):
    """Codes of finite numbers. sizes: near one, of all sizes, some zeros and subnormals, one sign."""
    def codes(n):
        x = rng.integers(0, 256, n)
        x = np.where((x & 0x7C) == 0x7C, x & 0xBF, x)
        if sizes == "near one" or sizes == "one sign":
            x = (x & 0x8F | 0x30) if kind == "e4m3" else (x & 0x87 | 0x38)
        if sizes == "small":
            x = np.where(rng.integers(0, 3, n) == 0, x & 0x80, x & 0x8F)
        return x & 0x7F if sizes == "one sign" else x
    a, b = codes((BLOCKS, 64, 32)), codes((BLOCKS, 32, 8))
    c = rng.standard_normal((BLOCKS, 64, 8)) * np.exp2(rng.integers(-12, 14, (BLOCKS, 64, 8)))
    if sizes == "small":
        c *= 2.0**-8
    return a, b, c.astype(np.float32)


def laid(a, b, c):
    """As the kernel takes them: A and C by thread, B in chunks of 16 along k."""
    t = np.arange(128)
    row, quad = t // 32 * 16 + t % 32 // 4, t % 4
    words = np.empty((BLOCKS, 128, 16), np.uint8)
    for r in range(4):
        for i in range(4):
            words[:, t, 4 * r + i] = a[:, row + 8 * (r % 2), 16 * (r // 2) + 4 * quad + i]
    chunks = b.reshape(BLOCKS, 2, 16, 8).transpose(0, 1, 3, 2).astype(np.uint8)
    sums = np.stack([c[:, row + 8 * (i // 2), 2 * quad + i % 2] for i in range(4)], -1)
    return words, np.ascontiguousarray(chunks), np.ascontiguousarray(sums.astype(np.float32))


def taken(d):
    out = np.empty((BLOCKS, 64, 8), np.float32)
    t = np.arange(128)
    row, quad = t // 32 * 16 + t % 32 // 4, t % 4
    for i in range(4):
        out[:, row + 8 * (i // 2), 2 * quad + i % 2] = d[:, :, i]
    return out


def model(kind, a, b, c, bits, at_a_time, by_value, keeps):
    value, exponent = numbers(kind)
    product = value[a][:, :, :, None] * value[b][:, None, :, :]
    size = np.floor(np.log2(np.maximum(np.abs(product), 1e-30))) if by_value else exponent[a][:, :, :, None] + exponent[b][:, None, :, :]
    size = np.where(product == 0, -200, size)
    total = c.astype(float)
    for first in range(0, 32, at_a_time):
        part, own = product[:, :, first:first + at_a_time], size[:, :, first:first + at_a_time]
        top = np.maximum(own.max(2), np.where(total == 0, -200, np.floor(np.log2(np.maximum(np.abs(total), 1e-300)))))
        unit = np.exp2(top - bits)
        total = (np.trunc(part / unit[:, :, None]).sum(2) + np.trunc(total / unit)) * unit
        if keeps:
            own_unit = np.exp2(np.floor(np.log2(np.maximum(np.abs(total), 1e-300))) - keeps)
            total = np.trunc(total / own_unit) * own_unit
    return total.astype(np.float32)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json")
    args = parser.parse_args()
    device, rng, rows = Device(), np.random.default_rng(1), []
    print(device.name)
    for kind in ("e4m3", "e5m2"):
        image = compiled(kind)
        for sizes in ("near one", "one sign", "all", "small"):
            a, b, c = draw(rng, kind, sizes)
            out = np.zeros((BLOCKS, 128, 4), np.float32)
            device.run(image, list(laid(a, b, c)), out)
            got = taken(out)
            for bits in (11, 12, 13, 14, 15, 25):
                for at_a_time in (32, 16):
                    for by_value in (False, True):
                        for keeps in (0, 13, 22):
                            same = float((model(kind, a, b, c, bits, at_a_time, by_value, keeps) == got).mean())
                            rows.append(dict(kind=kind, sizes=sizes, bits=bits, at_a_time=at_a_time, by_value=by_value, keeps=keeps, same=same))
            best = sorted((x for x in rows if x["kind"] == kind and x["sizes"] == sizes), key=lambda x: -x["same"])[:4]
            for x in best:
                print(f"{kind} {sizes:9} bits {x['bits']:2} of {x['at_a_time']} by {'value' if x['by_value'] else 'factors'} "
                      f"keeps {x['keeps'] or 'all':>3}: {x['same']:.6f} the same")
    whole = {}
    for x in rows:
        key = (x["bits"], x["at_a_time"], x["by_value"], x["keeps"])
        whole[key] = min(whole.get(key, 1), x["same"])
    for key, same in sorted(whole.items(), key=lambda x: -x[1])[:4]:
        print("over all: bits %d of %d, by_value %s, keeps %d: %.6f the same at least" % (*key, same))
    if args.json:
        with open(args.json, "w") as f:
            json.dump(dict(device=device.name, rows=rows), f)


if __name__ == "__main__":
    main()
