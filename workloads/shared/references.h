/* What workloads refer to, by where it is: the members of a struct workload_reference
 * that such references have in common.  A state is as the documents give it: those of
 * June 2020 (README of the framework determinism project) and of July 2023 (its later
 * pages). */
#ifndef WORKLOADS_SHARED_REFERENCES_H
#define WORKLOADS_SHARED_REFERENCES_H

#include "workloads/workload.h"

/* NUMBER as it is on GitHub.  AT: states and their months; DONE: the version that solved
 * it; each may be NULL. */
#define GITHUB_ISSUE(project, repository, number, about, at, done)                       \
    {                                                                                    \
        .kind = "issue", .id = project " issue " #number, .title = (about),              \
        .url = "https://github.com/" repository "/issues/" #number, .state = (at),       \
        .solved = (done)                                                                 \
    }
#define GITHUB_PULL(what, project, repository, number, about, at, done)                  \
    {                                                                                    \
        .kind = (what), .id = project " PR " #number, .title = (about),                  \
        .url = "https://github.com/" repository "/pull/" #number, .state = (at),         \
        .solved = (done)                                                                 \
    }
#define GITHUB_PR(project, repository, number, about, at, done)                          \
    GITHUB_PULL("pull request", project, repository, number, about, at, done)

#define TENSORFLOW_ISSUE(number, about, at, done)                                        \
    GITHUB_ISSUE("tensorflow", "tensorflow/tensorflow", number, about, at, done)
#define TENSORFLOW_PR(number, about, at, done)                                           \
    GITHUB_PR("tensorflow", "tensorflow/tensorflow", number, about, at, done)
/* A pull request that changes nothing but a release note. */
#define TENSORFLOW_NOTE(number, about, at, done)                                         \
    GITHUB_PULL("release note", "tensorflow", "tensorflow/tensorflow", number, about,    \
                at, done)
/* The first eight digits of the commit, and the others. */
#define TENSORFLOW_COMMIT(first, others, about, at, done)                                \
    {                                                                                    \
        .kind = "commit", .id = "tensorflow commit " #first, .title = (about),           \
        .url = "https://github.com/tensorflow/tensorflow/commit/" #first #others,        \
        .state = (at), .solved = (done)                                                  \
    }

/* FILE of a release, below tensorflow/. */
#define TENSORFLOW_SOURCE(release, file, about)                                          \
    {                                                                                    \
        .kind = "source", .id = "tensorflow " release " " file, .title = (about),        \
        .url = "https://github.com/tensorflow/tensorflow/blob/v" release                 \
               "/tensorflow/" file                                                       \
    }

#define DOCUMENTATION(name, address, about, done)                                        \
    {                                                                                    \
        .kind = "documentation", .id = (name), .title = (about), .url = (address),       \
        .solved = (done)                                                                 \
    }
#define D9M_PAGES "https://github.com/NVIDIA/framework-reproducibility/blob/"
#define README_2020(section, anchor, about, done)                                        \
    DOCUMENTATION("framework determinism README, " section,                              \
                  D9M_PAGES                                                              \
                  "2f82d6d55cc538c25bdd7496c8c811d84e46bf68/README.md#" anchor,          \
                  about, done)
/* A file that uses atomicAdd, without anybody having seen what comes of it. */
#define CANDIDATE_2023(about)                                                            \
    DOCUMENTATION("framework-reproducibility, TensorFlow: other possible sources",       \
                  D9M_PAGES                                                              \
                  "39c076b/doc/d9m/tensorflow.md#"                                       \
                  "other-possible-gpu-specific-sources-of-non-determinism",              \
                  about, NULL)
#define STATUS_2023(section, anchor, about, done)                                        \
    DOCUMENTATION("framework-reproducibility, status of " section,                       \
                  D9M_PAGES "39c076b/doc/d9m/tensorflow_status.md#" anchor, about, done)
#define PYTORCH_PAGE(section, anchor, about)                                             \
    DOCUMENTATION("PyTorch Determinism, " section,                                       \
                  D9M_PAGES "39c076b/doc/d9m/pytorch.md#" anchor, about, NULL)
#define PYTORCH_ALGORITHMS(about)                                                        \
    DOCUMENTATION("pytorch torch.use_deterministic_algorithms",                          \
                  "https://docs.pytorch.org/docs/stable/generated/"                      \
                  "torch.use_deterministic_algorithms.html",                             \
                  about, NULL)
#define CUDNN_ODDS_AND_ENDS(about)                                                       \
    DOCUMENTATION("cuDNN documentation, Odds and Ends",                                  \
                  "https://docs.nvidia.com/deeplearning/cudnn/backend/latest/"           \
                  "developer/misc.html",                                                 \
                  about, NULL)

#define GTC_SLIDES(pages, about, done)                                                   \
    {                                                                                    \
        .kind = "slides", .id = "GTC S9911 " pages, .title = (about),                    \
        .url = "https://bit.ly/determinism-in-deep-learning", .solved = (done)           \
    }
#define STACK_OVERFLOW(about)                                                            \
    {                                                                                    \
        .kind = "thread", .id = "Stack Overflow question 50744565", .title = (about),    \
        .url =                                                                           \
            "https://stackoverflow.com/questions/50744565/"                              \
            "how-to-handle-non-determinism-when-training-on-a-gpu"                       \
    }

#endif
