"""Text to token ids and back.

Reading order: `read` (what a file says, over `families`, `special`, `pretokenize`), `strings`
(the tables that kernels look into), `tokenizer` (special tokens), `bpe` and `spm` (one family
each, over `merges`), `pieces` and `detokenizer` (the way back), `vocab` (all of it).
"""

from engine.text.detokenizer import TextDecoder
from engine.text.vocab import Vocab

__all__ = ["TextDecoder", "Vocab"]
