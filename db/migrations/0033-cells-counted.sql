-- Version 33: cells that were taken away are missed, too (db/integrity/totals.h).  What a cell holds
-- changes with each run, and has a sum of its own; here its number stands for it.
INSERT INTO table_total SELECT 'cell', count(*), reprod_xor(id) FROM cell;
