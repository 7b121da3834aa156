"""Functions of Python that change a score or hide a key, as score programs: FlexAttention's score_mod and mask_mod.

A function runs once on numbers that stand for any (record.py), with what it holds opened (captured.py). What it did becomes text (text.py,
by the rows of operations.py). That text is read and computed by another program (lua.py) and compared with the function (compare.py).
translate.py leads through it and keeps what was found. Imports go one way: record, captured, operations, text; lua; compare; translate."""
