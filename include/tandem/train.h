/*
 * From labelled images to a run folder with a trained, checked model.
 *
 * Batch sizes are global. Same source, options and seed give the same bits at any thread count and
 * across any number of interruptions (on equal ISA and library versions).
 */
#ifndef TANDEM_TRAIN_H
#define TANDEM_TRAIN_H

#include "tandem/data.h"
#include "tandem/error.h"
#include "tandem/event.h"
#include "tandem/model.h"
#include "tandem/weights.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The options of `tandem train`; docs/reference/options.md describes each. Strings are lent for the
 * call. */
struct tdm_train_options {
    size_t struct_bytes; /* see tandem/api.h */
    const char *source;  /* class folders, an archive, a list, a table, IDX or CIFAR files */
    struct tdm_source_options how; /* … where the path does not say it */
    const char *run;               /* run folder to make; NULL: runs/<model>-<time> */
    const char *model;   /* name of a network (tdm_network_name); NULL: the network of the weights,
                            else the images choose one */
    const char *weights; /* file, or published name (tandem/weights.h); NULL, "auto": without model,
                            published ones on this machine, else from scratch */
    const char *freeze;  /* "base", "none", a number of layers, or "auto" */
    int unfreeze; /* epochs of training only the head; 0: all layers from the first step on */
    int unfreeze_layers;  /* layers to unfreeze every so many epochs; 0: all at once */
    double layer_decay;   /* learning rate of a layer, as a fraction of that of the next one */
    const char *features; /* of a frozen base, kept on disk: "f32", "f16" or "none" */
    /* Input of the network, as in tdm_model_options; NULL and 0: as published. */
    const char *fit, *resample, *scale, *padding;
    double crop_fraction;
    int size;
    int hidden;       /* outputs of a dense layer with ReLU before the last; 0: none */
    double dropout;   /* fraction of the features zeroed before the last layer */
    const char *loss; /* "softmax" or "binary" */
    double label_smoothing;
    const char *class_weights; /* "none" or "balanced" */
    /* Limits; 0: no limit of this kind. */
    int epochs;
    int64_t steps; /* of the optimizer */
    double minutes;
    int eval_every; /* epochs between validations */
    /* The split; a test part that the source gives replaces that of test_fraction. 0: no test. */
    double train_fraction, val_fraction, test_fraction;
    double fraction;     /* of the images of every class; 1: all */
    int per_class;       /* most images of a class; 0: all */
    const char *augment; /* random changes: "flip,crop:4"; "auto": by the images; NULL: none */
    int views; /* augmented copies of each image, of which features are kept; 0: new ones in every
                  epoch; -1: 8 where features are kept, else 0 */
    bool balance;      /* show every class equally often */
    bool strict;       /* an image that cannot be read ends the training (TDM_E_INPUT) */
    int64_t memory;    /* bytes for prefetching and caches; 0: a part of what is free */
    const char *cache; /* "auto", "none", "encoded", "decoded" or "disk" */
    int batch; /* images per step, over all devices; 0: chosen by their number, memory and speed */
    int shard; /* images per batch-norm group; 0: the network's own */
    const char *bn;         /* images of batch-norm statistics: "shard", "batch", or "frozen" */
    const char *precision;  /* of activations: "auto" (allows TF32), "f32", "bf16" or "f16" */
    bool fast;              /* on a GPU: allow algorithms whose results differ from run to run;
                             * several ranks: send gradients as bf16 */
    double learning_rate;   /* 0: the optimizer's own, scaled from reference_batch to batch */
    const char *lr_scaling; /* "none", "linear" or "sqrt"; NULL: the optimizer's own, none for a
                               learning_rate above 0 */
    int reference_batch;
    const char *optimizer; /* a name of tdm_optimizer_name, and parameters: "adam:beta2=0.99" */
    double momentum;       /* -1: the optimizer's own */
    double weight_decay;   /* -1: the optimizer's own */
    double clip_norm;      /* largest norm of the mean gradient; 0: no limit */
    double ema;            /* decay of a running average of the weights; 0: none */
    const char *schedule;  /* a name of tdm_schedule_name, and parameters: "step:every=5" */
    double warmup_epochs;  /* -1: the schedule's own */
    int patience;          /* validations without improvement; 0: never stop; -1: a quarter of the
                              epochs, at least 10, or 10 without a limit of epochs */
    const char *monitor;   /* "accuracy" or "loss" */
    double min_delta;      /* smallest improvement: a fraction of the images, or loss */
    int threads;           /* 0: one per core */
    const char *device;    /* "cpu", "cuda", "cuda:1", "cuda:0,1", "cuda:all" or "ref" */
    const char *decode;    /* device that decodes JPEG files: "cpu" or "card" */
    uint64_t seed;
    /* Checkpoints besides those at epoch ends; 0: none. */
    int checkpoint_every; /* steps */
    double checkpoint_minutes;
    bool resume;               /* resume the run; start it if there is none */
    const char *cache_dir;     /* folder of the disk cache; NULL: below TANDEM_HOME */
    const char *checkpoint_to; /* folder or URI of an object store where they are copied; NULL */
    const char *trace; /* file of trace events to write at the end (tandem/trace.h); NULL: none */
    /* Work of the program that is done once and may take long, such as fetching weights; NULL:
     * none. Called in rank 0 when all ranks have come together and agree on their options, and the
     * source and the run folder can be used, before images are read. The others wait for as long
     * as it takes; the run's seconds are without it. Its failure ends the training. */
    tdm_status (*prepare)(void *self, tdm_sink sink, tdm_error *err);
    void *prepare_self;
    bool is_alone; /* this process trains by itself, whatever ranks a launcher has started */
};

struct tdm_features {
    int64_t rows;    /* feature rows of images and views */
    int64_t reused;  /* rows found on disk */
    int64_t checked; /* of these, computed again and found equal */
    int64_t remade;  /* damaged or lost after they were found, and computed again */
};

/* Cost and effect of the epochs after the best one. */
struct tdm_after_best {
    int epochs;
    double seconds;
    /* Validation images, and the distinct ones that are right only with the best weights, and only
     * with the last. n is 0 where the counts are lost, or no epoch came after. */
    int64_t n, only_best, only_last;
    double p; /* McNemar's exact test of the two */
    int64_t n_distinct;
};

/* The next step that helps most, by the run's measurements. */
struct tdm_next {
    const char *step;   /* such as "cache"; "none" (docs/reference/json.md). Static storage */
    char evidence[400]; /* the figures, and an option or a command */
};
/* A step in words for people, such as "keep the features"; an unknown one as it is. */
TDM_API const char *tdm_next_words(const char *step);

/* An earlier test result, when another epoch was the best. */
struct tdm_test_before {
    int epoch;
    tdm_score score;
};
enum { TDM_TESTS_BEFORE = 8 };

struct tdm_train_result {
    size_t struct_bytes; /* see tandem/api.h */
    char run[1024];
    int epochs;           /* complete ones */
    int best_epoch;       /* from 1; may be one that a limit cut short */
    const char *ended_by; /* limit reached: "epochs", "steps", "minutes", "patience" */
    int patience;         /* patience in effect: validations without improvement; 0: any number */
    struct tdm_after_best after_best;
    int64_t steps;
    double seconds; /* all sittings, from opening to the last validation, without `prepare` */
    double images_per_second; /* while steps are computed */
    tdm_score train;          /* the best epoch's, counted before each step */
    tdm_score val, test;      /* the best epoch's weights; n of test is 0 without a test */
    int n_tests_before;       /* earlier tests of a run that was resumed; the first ones are kept */
    struct tdm_test_before tests_before[TDM_TESTS_BEFORE];
    int64_t skipped;              /* images that could not be read, named in the run record */
    bool cached;                  /* features of a frozen base were reused */
    struct tdm_features features; /* all 0 where none are kept */
    int views;                    /* of each image; 0: new ones in every epoch */
    int layers_left;              /* that --unfreeze did not reach before the end */
    int batch;                    /* images of a step */
    char batch_reason[320];       /* why it was chosen; "": by the options */
    int world;                    /* ranks */
    struct tdm_next next;
    int rank; /* of this process; only rank 0 has the test, after_best and next */
    struct tdm_unread_list unread; /* images that were left out or skipped for their kind */
};

/* The rank of this process among those that train one run together, by the variables of its
 * launcher (docs/reference/ranks.md); 0: the first, or alone. */
TDM_API int tdm_train_rank(void);
/* Number of processes that train with these options: one for each GPU that options->device lists
 * ("cuda:0,1", "cuda:all"); 1 for any other device, and in a process that a launcher has started.
 * Several are started by tdm_launch (tandem/launch.h). TDM_E_ABSENT: GPUs cannot be counted. */
TDM_API tdm_status tdm_train_processes(const struct tdm_train_options *options, int *n,
                                       tdm_error *err) TDM_MUST_USE;

/* Write the defaults of this library into *options, a struct of that size. */
TDM_API void tdm_train_options_init(struct tdm_train_options *options, size_t struct_bytes);
static inline struct tdm_train_options tdm_train_options_default(void)
{
    struct tdm_train_options options;
    tdm_train_options_init(&options, sizeof options);
    return options;
}

/* Names that options accept, by index; NULL past the last. */
TDM_API const char *tdm_network_name(int index);
TDM_API const char *tdm_optimizer_name(int index);
TDM_API const char *tdm_schedule_name(int index);
TDM_API const char *tdm_lr_scaling_name(int index);
/* Their values: docs/reference/augmentations.md. */
TDM_API const char *tdm_augment_name(int index);

/* Set all members but source, run, resume and trace to those recorded in a run folder, so that it
 * can be resumed. Their strings live in *words: free it with tdm_json_document_free after the last
 * use of options. Where the folder has no run yet, the copies in options->checkpoint_to are
 * read; without them nothing changes. TDM_E_INPUT: the record is damaged, or names something that
 * this build lacks. */
TDM_API tdm_status tdm_train_options_recorded(const char *run, struct tdm_train_options *options,
                                              tdm_json_document **words,
                                              tdm_error *err) TDM_MUST_USE;

/* The published weights that would be worth fetching (tdm_weights_fetch) before tdm_train is called
 * with these options. NULL: none, because the options name a network or a file, resume a run, or
 * weights are on this machine already; because the images are no photos; or because tdm_train will
 * refuse the source. tdm_train itself downloads nothing. */
TDM_API tdm_status tdm_train_weights_wanted(const struct tdm_train_options *options,
                                            const struct tdm_weights_known **wanted,
                                            tdm_error *err) TDM_MUST_USE;

/* Blocks until trained, stopped (TDM_E_STOPPED after a checkpoint) or failed. An existing run
 * without resume is TDM_E_USAGE; resume with other options that change bits too. */
TDM_API tdm_status tdm_train(const struct tdm_train_options *options, tdm_sink sink,
                             struct tdm_train_result *result, tdm_error *err) TDM_MUST_USE;

/* ---- as text --------------------------------------------------------------------------------- */

/* Training and predicting for programs in other languages: options and results are JSON objects, so
 * no struct is needed. examples/train.py does it from Python. */

/* options: {"source": "photos", "run": "runs/first", "epochs": 5}: members and values as in
 * run.json; null leaves a member to the network, the optimizer or the schedule. With "resume":
 * true, members that are not given are those recorded in "run". *answer is the JSON that `tandem
 * train --json` prints, without its options, or the sentences of a failure; free it with
 * tdm_text_free. NULL: out of memory. */
TDM_API tdm_status tdm_text_train(const char *options, tdm_sink sink, char **answer) TDM_MUST_USE;

/* Set the options that text names, as tdm_text_train reads them; "resume" changes nothing but the
 * member. Strings live in *words: free it with tdm_json_document_free after the last use of
 * options. TDM_E_USAGE: there is no such option, or its value is of the wrong kind. */
TDM_API tdm_status tdm_train_options_set(const char *text, struct tdm_train_options *options,
                                         tdm_json_document **words, tdm_error *err) TDM_MUST_USE;

/* *answer gets {"predictions": [{"path": …, "top": [{"index", "label", "probability"}]}]}, as
 * `tandem predict --json` prints it. */
TDM_API tdm_status tdm_text_predict(const char *model, const char *const *paths, size_t n_paths,
                                    int top, char **answer) TDM_MUST_USE;

TDM_API void tdm_text_free(char *text);

/* ---- the same, one by one, into a writer --------------------------------------------------- */

/* As members of an object that is open. */
TDM_API void tdm_train_result_to_json(const struct tdm_train_result *result,
                                      tdm_json_writer *writer);
/* As an object. */
TDM_API void tdm_prediction_to_json(const struct tdm_prediction *prediction, bool has_logits,
                                    tdm_json_writer *writer);

#ifdef __cplusplus
}
#endif
#endif
