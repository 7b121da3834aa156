"""cuDNN's attention by its own graphs (the package nvidia-cudnn-frontend): lengths and pages, which PyTorch's entry to it does not take."""
import importlib

import torch


class CudnnGraph:
    """A peer of decode_peers.py. A graph is built once for all calls that differ in addresses alone."""
    title = "cudnn graph"

    def __init__(self):
        self.built, self.handle = {}, None
        try:
            self.cudnn, self.why = importlib.import_module("cudnn"), None
        except Exception as e:  # a package that does not fit this PyTorch may raise anything
            self.cudnn, self.why = None, str(e)

    def available(self):
        return self.why

    def version(self):
        return f"cudnn-frontend {self.cudnn.__version__}, cuDNN {self.cudnn.backend_version()}"

    def padded(self, q, k, v, lengths):
        return self.runner(q, k, v, lengths, None, k.shape[1])

    def paged(self, q, k, v, lengths, table):
        return self.runner(q, k, v, lengths, table, table.shape[1] * k.shape[1])

    def runner(self, q, k, v, lengths, table, longest):
        b, sq = q.shape[:2]
        wide, out = [t.transpose(1, 2) for t in (q, k, v)], torch.empty_like(q)  # [b, h, s, d] by strides
        sizes = [torch.full((b, 1, 1, 1), sq, dtype=torch.int32, device=q.device), lengths.view(b, 1, 1, 1)]
        given = dict(zip(("q", "k", "v", "seq_len_q", "seq_len_kv"), wide + sizes))
        if table is not None:
            given["table"] = table.view(b, 1, -1, 1)
        key = (longest, *((n, t.shape, t.stride()) for n, t in given.items()))
        if key not in self.built:
            self.built[key] = self.build(given, out.transpose(1, 2), longest)
        graph, names, space = self.built[key]
        pack = {names[n]: t for n, t in {**given, "o": out.transpose(1, 2)}.items()}

        def run(i):
            self.cudnn.set_stream(handle=self.handle, stream=torch.cuda.current_stream().cuda_stream)
            graph.execute(pack, space, handle=self.handle)
            return out
        return run

    def described(self, given, out, longest):
        """(graph, its tensors by name), before anything is compiled."""
        c = self.cudnn
        kinds = {torch.bfloat16: c.data_type.BFLOAT16, torch.int32: c.data_type.INT32}
        graph = c.pygraph(io_data_type=c.data_type.BFLOAT16, intermediate_data_type=c.data_type.FLOAT, compute_data_type=c.data_type.FLOAT,
                          **({"handle": self.handle} if self.handle is not None else {}))
        names = {n: graph.tensor(name=n, dim=list(t.shape), stride=list(t.stride()), data_type=kinds[t.dtype]) for n, t in given.items()}
        pages = {}
        if "table" in given:
            pages = dict(paged_attention_k_table=names["table"], paged_attention_v_table=names["table"],
                         paged_attention_max_seq_len_kv=longest)
        names["o"], _ = graph.sdpa(name="sdpa", q=names["q"], k=names["k"], v=names["v"], attn_scale=given["q"].shape[3] ** -0.5,
                                   is_inference=True, use_padding_mask=True, seq_len_q=names["seq_len_q"], seq_len_kv=names["seq_len_kv"],
                                   **pages)
        names["o"].set_output(True).set_dim(list(out.shape)).set_stride(list(out.stride()))
        graph.validate()
        return graph, names

    def build(self, given, out, longest):
        if self.handle is None:
            self.handle = self.cudnn.create_handle()
        graph, names = self.described(given, out, longest)
        graph.build_operation_graph()
        graph.create_execution_plans([self.cudnn.heur_mode.A, self.cudnn.heur_mode.FALLBACK])
        graph.check_support()
        graph.build_plans()
        return graph, names, torch.empty(max(1, graph.get_workspace_size()), dtype=torch.uint8, device=out.device)
