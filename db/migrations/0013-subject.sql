-- Version 13: whose computation a cell and an item are of (daemon/evidence/subject.h).

ALTER TABLE job_item ADD COLUMN subject TEXT NOT NULL DEFAULT 'model'
    CHECK (subject IN ('model', 'library', 'framework'));
ALTER TABLE job_item ADD COLUMN subject_name TEXT NOT NULL DEFAULT '' -- "cuDNN"; '' of a model
    CHECK ((subject_name = '') = (subject = 'model'));
ALTER TABLE cell ADD COLUMN subject TEXT NOT NULL DEFAULT 'model'
    CHECK (subject IN ('model', 'library', 'framework'));
ALTER TABLE cell ADD COLUMN subject_name TEXT NOT NULL DEFAULT ''     -- as in job_item
    CHECK ((subject_name = '') = (subject = 'model'));

-- What was a library's before it was said: backend, workload and variant as globs, name.
CREATE TABLE library_variant (backend, workload, variant, name);
INSERT INTO library_variant VALUES
    ('cuda', 'conv_wgrad', 'a*', 'cuDNN'), ('cuda', 'conv_dgrad', 'a*', 'cuDNN'),
    ('cuda', 'depthwise_wgrad', 'algo_*', 'cuDNN'), ('cuda', 'conv_autotune', '*', 'cuDNN'),
    ('cuda', 'cudnn_conv_*', 'algo_*', 'cuDNN'), ('cuda', '*', 'cudnn*', 'cuDNN'),
    ('cuda', 'matmul_batched', 'cublas*', 'cuBLAS'), ('cuda', 'ring_allreduce', 'nccl_*', 'NCCL'),
    ('cpu', 'onednn_*', '*', 'oneDNN');

UPDATE job_item SET (subject, subject_name) = ('library', l.name)
    FROM library_variant l, case_key k, device d
    WHERE k.number = job_item.case_key AND d.id = job_item.device AND d.backend = l.backend
    AND k.workload GLOB l.workload AND k.variant GLOB l.variant;
-- A command of the configuration computed whatever it computed: its name stands for it.
UPDATE job_item SET (subject, subject_name) = ('framework', k.workload) FROM case_key k
    WHERE k.number = job_item.case_key AND job_item.stack IN ('external', 'external-cuda');
UPDATE cell SET (subject, subject_name) = (i.subject, i.subject_name)
    FROM run r JOIN job_item i ON i.job = r.job AND i.seq = r.item
    WHERE r.cell = cell.id AND i.subject <> 'model';
DROP TABLE library_variant;
