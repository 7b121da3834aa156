"""Truths of pairs as a score program reads them, 32 in a word."""
import collections


class Bits(collections.namedtuple("Bits", "words n before")):
    """Words of truths, int32, n truths in their last dimension: of keys from `before` on; those before are seen."""

    def sees(self, b, i, j):
        """Whether query i of sequence b, or of b a sequence and a head, sees key j: of tensors of indices."""
        at = (j - self.before).clamp(min=0)
        seen = (self.words[(*(b if isinstance(b, tuple) else (b,)), i, at // 32)] >> at % 32) & 1 != 0
        return seen | (j < self.before) if self.before else seen

    def expand(self, *extents):
        """The same for as many sequences and heads, with the last dimensions as they are."""
        return self._replace(words=self.words.expand(*extents, *self.words.shape))


def bits(seen, before=0):
    """Of a matrix of truths, or of bytes."""
    import torch
    n = seen.shape[-1]
    padded = torch.nn.functional.pad(seen.to(torch.uint8), (0, -n % 32)).view(*seen.shape[:-1], -1, 32)
    words = sum(padded[..., k].long() << k for k in range(32))
    return Bits(torch.where(words >= 2 ** 31, words - 2 ** 32, words).int(), n, before)
