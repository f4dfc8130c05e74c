/*
 * From a folder of labelled pictures to a run folder with a trained, checked model.
 *
 * Batch sizes are global. Same source, options and seed give the same bits at any thread count and
 * across any number of interruptions (on equal ISA and library versions).
 */
#ifndef TANDEM_TRAIN_H
#define TANDEM_TRAIN_H

#include "tandem/error.h"
#include "tandem/event.h"
#include "tandem/source.h"
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Start from tdm_train_options_default() and change fields. Strings are lent for the call. */
struct tdm_train_options {
    const char *source; /* what a source reads: class folders, archives, tables, IDX, CIFAR */
    struct tdm_source_options how; /* … and how, where the path does not say it */
    const char *run;               /* run folder to make; NULL: runs/<model>-<time> */
    const char *model; /* a name of models.def; NULL: what weights are of, else convnet7 */
    /* Begin with these: a file of any program, or the name of published ones that are at hand
     * (tandem/weights.h). A last layer for other classes is replaced. NULL: from scratch. */
    const char *weights;
    /* What is left as it is: "base", all but the head; "none"; a number of layers; "auto": the base
     * of weights whose head is new, else nothing. */
    const char *freeze;
    /* The head is trained alone for so many epochs, and then what lies before it too, down to what
     * freeze says; 0: from the first step on. The optimiser begins anew with what is thawed. */
    int unfreeze;
    int unfreeze_layers; /* … so many layers more every so many epochs; 0: all at once */
    double layer_decay;  /* a layer's rate is so much of that of the layer behind it; 1: the same */
    /* Rows that a frozen base makes of pictures, kept on disk for all runs: "f32"; "f16", half the
     * bytes, for the pictures that train; "none": made anew in every epoch. */
    const char *features;
    /* How pictures become its input, where the weights do not say it or another way is wanted; NULL
     * and 0: as they were published. Words as in tdm_model_options. */
    const char *fit, *resample, *scale, *padding;
    double crop_fraction;
    int size; /* input pixels, square; 0: the model's own */
    /* The head: outputs of a dense layer with ReLU before its last; the part that dropout zeroes
     * before the last; 0: without. */
    int hidden;
    double dropout;
    const char *loss;          /* "softmax", or "binary": yes or no, for two classes by one logit */
    double label_smoothing;    /* so much of each label belongs to all classes */
    const char *class_weights; /* "none", or "balanced": each class counts as much in the loss */
    int epochs;                /* stop after so many; 0: no limit of this kind */
    int64_t steps;             /* … optimiser steps; 0: no limit of this kind */
    double minutes;            /* … minutes of training; 0: no limit of this kind */
    int eval_every;            /* validate every so many epochs (and at the end) */
    double train_fraction;     /* of the split: 0.9 */
    double val_fraction;       /* 0.1 */
    /* Kept apart, and judged at the end, by the best weights; all three sum to at most 1. A
     * test that the source gives is taken instead. 0: none is judged. */
    double test_fraction;
    double fraction;     /* use this part of the pictures of every class; 1: all */
    int per_class;       /* use at most so many pictures a class; 0: all */
    const char *augment; /* how training pictures are changed: "flip,crop:4"; NULL: not at all */
    /* With a frozen base: so many changed views of each picture are made once, and kept as features
     * are; epochs go through them. 0: every epoch changes pictures anew, and computes the base; -1:
     * 8 where features are kept, else 0. */
    int views;
    bool balance;      /* every class equally often in an epoch, whatever its size */
    bool strict;       /* a picture that cannot be read ends the training (TDM_E_INPUT) */
    int64_t memory;    /* bytes for reading ahead and caches; 0: a part of what is free */
    const char *cache; /* "auto", "none", "encoded", "decoded" or "disk" */
    /* Images of one step, on all devices together; 0: chosen before the first step, by how many
     * pictures train, what memory holds and what is faster (the result says why). */
    int batch;
    int shard; /* images a shard; 0: the model's own */
    /* The images that a batch norm's statistics are over: "shard" or "batch"; "frozen": those of
     * the weights stay, and scale and shift are trained. */
    const char *bn;
    /* What activations are stored as: "auto", "f32", "bf16" or "f16", as far as the device can.
     * Products of f32 may be rounded to TF32 on a card, unless "f32" is asked for by name. */
    const char *precision;
    /* On a card: its libraries may add in another order on every run, where that is faster. Bits
     * are not the same then, neither of two runs nor of one that is gone on with. */
    bool fast;
    /* 0: the optimizer's own (sgd: the network's; of a head alone on weights one that follows
     * how many pictures train) at the reference batch, scaled with the batch by the optimizer's own
     * rule; another is scaled only where lr_scaling says so. */
    double learning_rate;
    const char *lr_scaling; /* "none", "linear" or "sqrt"; NULL: see learning_rate */
    int reference_batch;    /* that rates are meant for: 32 */
    const char *optimizer;  /* a name of optimizers.def, and parameters: "adam:beta2=0.99" */
    double momentum;        /* -1: the optimizer's own */
    double weight_decay;    /* on weights, never on biases or batch-norm parameters; -1: likewise */
    double clip_norm;       /* the mean gradient is made no longer than this; 0: left alone */
    double ema; /* what averages of the weights keep in a step; they judge and are kept. 0: none */
    const char *schedule; /* a name of schedules.def, and parameters: "step:every=5" */
    double
        warmup_epochs; /* rate rises linearly over so many epochs first; -1: the schedule's own */
    /* Stop when validation did not improve for so many validations; 0: never; -1: a quarter of the
     * epochs, 10 of them at least, or 10 where only steps or minutes end the training. */
    int patience;
    const char *monitor; /* "accuracy" or "loss": what improves, and which epoch is the best */
    double min_delta;    /* an improvement is more than this: a part of the pictures, or of loss */
    int threads;         /* 0: all usable CPUs */
    const char *device;  /* a name of backends.def, or "cpu": the best one for the CPU */
    /* Who decodes pictures: "cpu", or "card": JPEG files by the device, as far as it takes them, to
     * pixels that are near those that the CPU makes. */
    const char *decode;
    uint64_t seed;
    int checkpoint_every;      /* steps between checkpoints beside those at epoch ends; 0: none */
    double checkpoint_minutes; /* … and minutes between them; 0: none */
    bool resume;               /* go on where the run stands; start it where there is none */
};

struct tdm_features {
    int64_t rows, reused,
        checked;    /* of pictures and views; found on disk; of these made again, and equal */
    int64_t remade; /* damaged or gone since they were found, and computed once more */
};

/* What the validations after the best one cost, and what they changed. */
struct tdm_after_best {
    int epochs;
    double seconds;
    /* Pictures that judge; right with the best weights alone, and with the last alone. n is 0 where
     * it is not known any more, or nothing came after. */
    int64_t n, only_best, only_last;
    double p; /* McNemar's exact test of the two */
};

/* The one step that helps most by what the run measured. */
struct tdm_next {
    const char *step;   /* such as "cache"; "none" (docs/reference/json.md). Static storage */
    char evidence[400]; /* the figures, and an option or a command */
};

/* A test that was judged before, when another epoch was the best. */
struct tdm_test_before {
    int epoch;
    tdm_score score;
};
enum { TDM_TESTS_BEFORE = 8 };

struct tdm_train_result {
    char run[1024];
    /* Those that are complete; and, from 1, the one whose end, or whatever there is of it where a
     * limit cut it short, was the best. */
    int epochs, best_epoch;
    const char *ended_by; /* the limit that was reached: "epochs", "steps", "minutes", "patience" */
    int patience;         /* validations without improvement that were borne; 0: any number */
    struct tdm_after_best after_best;
    int64_t steps;
    double seconds, images_per_second; /* of training, all sittings */
    tdm_score
        train; /* of the best epoch, counted while training: each image once, before its update */
    tdm_score val;  /* of the best epoch's weights */
    tdm_score test; /* likewise; n is 0 where no test was asked for */
    /* What the test said of earlier best epochs, of a run that went on after it: it was judged so
     * many times before. The first are kept. */
    int n_tests_before;
    struct tdm_test_before tests_before[TDM_TESTS_BEFORE];
    int64_t skipped;              /* pictures that could not be read, named in the run record */
    bool cached;                  /* features of a frozen base were reused */
    struct tdm_features features; /* all 0 where none are kept */
    int views;                    /* of each picture; 0: it is changed anew in every epoch */
    int layers_left;              /* that --unfreeze was to thaw, and training ended before it */
    int batch;                    /* images of a step */
    char batch_reason[320];       /* why it was chosen; "": it was asked for */
    int world;                    /* ranks */
    struct tdm_next next;
};

TDM_API struct tdm_train_options tdm_train_options_default(void);

/* What model, optimizer and schedule may be called, one after the other; NULL past the last. */
TDM_API const char *tdm_network_name(int index);
TDM_API const char *tdm_optimizer_name(int index);
TDM_API const char *tdm_schedule_name(int index);
TDM_API const char *tdm_lr_scaling_name(int index);
/* What augment may hold; docs/reference/augmentations.md has the values that may follow. */
TDM_API const char *tdm_augment_name(int index);

/* What the run in that folder was begun with, so that going on needs no option repeated: sets every
 * field but source, run and resume. *words is what recorded strings live in, to be freed with
 * tdm_json_document_free after the last use of options. A folder without a run changes nothing.
 * TDM_E_INPUT: its record is damaged, or names what this build does not know. */
TDM_API tdm_status tdm_train_options_recorded(const char *run, struct tdm_train_options *options,
                                              tdm_json_document **words,
                                              tdm_error *err) TDM_MUST_USE;

/* Blocks until trained, stopped (TDM_E_STOPPED after a checkpoint) or failed. An existing run
 * without resume is TDM_E_USAGE; resume with other options that change bits too. */
TDM_API tdm_status tdm_train(const struct tdm_train_options *options, tdm_sink sink,
                             struct tdm_train_result *result, tdm_error *err) TDM_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
