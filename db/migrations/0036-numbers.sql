-- Version 36: a number that a row had is never given to another row, also where somebody deleted the
-- row: what still refers to it would count for the new one.  AUTOINCREMENT needs sqlite_sequence, which
-- SQLite makes with the first table that says it, and changes no rows: only the text
-- (lang_altertable.html, 7).
CREATE TABLE first_to_say_it (number INTEGER PRIMARY KEY AUTOINCREMENT);
DROP TABLE first_to_say_it;
PRAGMA writable_schema = ON;
UPDATE sqlite_schema
    SET sql = replace(sql, ' INTEGER PRIMARY KEY,', ' INTEGER PRIMARY KEY AUTOINCREMENT,')
    WHERE type = 'table' AND name IN ('case_key', 'cell', 'environment', 'job', 'library_list',
        'schedule', 'screening', 'tensor_blob', 'trace');
PRAGMA writable_schema = RESET;
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence (name, seq)
    SELECT 'case_key', ifnull(max(number), 0) FROM case_key
    UNION ALL SELECT 'cell', ifnull(max(id), 0) FROM cell
    UNION ALL SELECT 'environment', ifnull(max(number), 0) FROM environment
    UNION ALL SELECT 'job', ifnull(max(number), 0) FROM job
    UNION ALL SELECT 'library_list', ifnull(max(number), 0) FROM library_list
    UNION ALL SELECT 'schedule', ifnull(max(number), 0) FROM schedule
    UNION ALL SELECT 'screening', ifnull(max(number), 0) FROM screening
    UNION ALL SELECT 'tensor_blob', ifnull(max(number), 0) FROM tensor_blob
    UNION ALL SELECT 'trace', ifnull(max(number), 0) FROM trace;
