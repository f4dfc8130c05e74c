/*
 * The frame around every command: read what was asked, run it, print one result or one error, end
 * with the status that other programs rely on. Reading order: command.h, settings.h, then this.
 */
#include "cli/command.h"
#include "cli/help.h"
#include "cli/settings.h"
#include "cli/user_config.h"
#include "cli/watch.h"
#include "base/text/json.h"
#include "base/text/rank_line.h"
#include "tandem/log.h"
#include "tandem/event.h"
#include "tandem/train.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* All that one run of the program holds: settings, the command's struct that they fill, output. */
struct frame {
    struct tdmi_settings settings;
    struct tdmi_globals globals;
    union tdmi_command_values values;
    const char **words; /* as typed: reading arguments changes argv */
    struct tdmi_output out;
    bool is_silent;  /* another process of the job prints the result */
    int exit_status; /* of a run without error */
};

/* The first SIGINT, SIGTERM or SIGHUP asks for a clean end, the second one of either ends the
 * process. */
static void on_stop_signal(int signal_number)
{
    if (tdm_stop_is_requested()) {
        signal(signal_number, SIG_DFL);
        raise(signal_number); /* delivered when this handler returns */
    }
    tdm_stop_request();
}

/* Schedulers send these before they take a machine away, to some ranks or all, once or again. */
static void on_preemption(int signal_number)
{
    (void)signal_number;
    tdm_stop_request();
}

/* A signal that the caller had ignored (nohup, a shell's background job) stays ignored. SA_RESTART:
 * work in progress sees the stop flag, not system calls that fail without reason. */
static void catch_signal(int signal_number, void (*handler)(int))
{
    struct sigaction before, action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    if (sigaction(signal_number, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(signal_number, &action, NULL);
}

/* A pipe that its reader has closed becomes an ordinary failed write. */
static void install_signals(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigemptyset(&ignore.sa_mask);
    sigaction(SIGPIPE, &ignore, NULL);
    catch_signal(SIGINT, on_stop_signal);
    catch_signal(SIGTERM, on_stop_signal);
    catch_signal(SIGHUP, on_stop_signal); /* the terminal or the connection went away */
    catch_signal(SIGUSR1, on_preemption);
    catch_signal(SIGUSR2, on_preemption);
}

/* A caller may close the standard streams. The next file opened would then take their place and
 * receive our messages: fill the gaps. Output gets a descriptor that cannot be written, so that
 * the loss is noticed. */
static void fill_standard_streams(void)
{
    static const int modes[] = {O_RDONLY, O_RDONLY, O_WRONLY};
    for (int fd = 0; fd < 3; fd++) {
        if (fcntl(fd, F_GETFD) == -1 && open("/dev/null", modes[fd]) != fd)
            _exit(4);
    }
}

/* The stack of the first thread grows as it is used, and where there is no address space left for
 * it, the program is killed without a sentence. So what the deepest call needs is taken before
 * anything else is; noinline, or main would have it for good. */
enum { STACK_BYTES = 512 << 10 };

__attribute__((noinline)) static void touch_stack(void)
{
    volatile char lowest[STACK_BYTES];
    lowest[0] = 0;
    (void)lowest[0];
}

static bool grow_stack(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur < 2 * STACK_BYTES)
        return true; /* a limit this small was set on purpose */
    void *room =
        mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return false;
    (void)munmap(room, STACK_BYTES);
    touch_stack();
    return true;
}

/* Arrow, where it is loaded: memory of malloc where it would take from an allocator of its own,
 * which takes 64 MiB of addresses at a time and ends the program without them; and no thread that
 * returns memory of another that we never use. What somebody has set stays. */
static void choose_allocators(void)
{
    (void)setenv("ARROW_DEFAULT_MEMORY_POOL", "system", 0);
    (void)setenv("JE_ARROW_MALLOC_CONF", "background_thread:false", 0);
}

/* Errors found while the options are still being read must have the requested form, too. */
static bool is_json_asked(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--json") == 0 || strcmp(argv[i], "--json=true") == 0)
            return true;
    }
    return false;
}

static void write_error(tdm_json_writer *json, const tdm_error *err)
{
    int outermost = err->n_frames - 1;
    tdm_json_object_begin(json, NULL);
    tdm_json_object_begin(json, "error");
    tdm_json_string(json, "code", tdm_status_name(err->code));
    tdm_json_string(json, "message",
                    outermost >= 0 ? tdm_error_sentence(err, outermost)
                                   : tdm_status_text(err->code));
    tdm_json_array_begin(json, "causes");
    for (int i = outermost - 1; i >= 0; i--)
        tdm_json_string(json, NULL, tdm_error_sentence(err, i));
    tdm_json_array_end(json);
    tdm_json_string(json, "advice", tdm_status_advice(err->code));
    tdm_json_integer(json, "exit", tdm_status_exit(err->code));
    tdm_json_object_end(json);
    tdm_json_object_end(json);
}

static tdm_status print_json(tdm_json_writer *json, struct tdmi_output *out, tdm_error *err)
{
    const char *text;
    TDM_TRY(tdm_json_finish(json, &text, NULL, err), err,
            "the result could not be written as JSON");
    tdmi_print_raw(out, text);
    tdmi_print_raw(out, "\n");
    return TDM_OK;
}

/* ---- one run ---------------------------------------------------------------------------- */

/* --quiet and --verbose: the stronger source counts, as for a single option. */
static tdm_status choose_verbosity(struct tdmi_settings *settings, struct tdmi_globals *globals,
                                   tdm_error *err)
{
    struct tdmi_setting *quiet = NULL, *verbose = NULL;
    if (!globals->quiet || !globals->verbose)
        return TDM_OK;
    tdmi_settings_find(settings, "quiet", &quiet);
    tdmi_settings_find(settings, "verbose", &verbose);
    if (quiet->origin == verbose->origin)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "found both --quiet and --verbose; one of them is accepted");
    globals->quiet = quiet->origin > verbose->origin;
    globals->verbose = !globals->quiet;
    return TDM_OK;
}

/* Values read before an error are kept: the form of the message depends on them. So a wrong
 * argument is reported only after the environment was read. */
static tdm_status gather(struct frame *frame, int argc, char **argv, tdm_error *err)
{
    struct tdmi_settings *settings = &frame->settings;
    struct tdmi_globals *globals = &frame->globals;
    tdm_error ignored = {0};
    tdm_status status = tdmi_settings_read_arguments(settings, argc, argv, err);
    if (settings->command && settings->command->defaults)
        settings->command->defaults(frame->values.bytes);
    tdmi_settings_store(settings, globals, frame->values.bytes);
    if (status == TDM_OK && (globals->help || globals->help_all || globals->version))
        return TDM_OK;
    const tdm_status environment = tdmi_settings_read_environment(
        settings, (const char *const *)environ, status == TDM_OK ? err : &ignored);
    tdmi_settings_store(settings, globals, frame->values.bytes);
    TDMI_TRY(status);
    TDMI_TRY(environment);
    char of_user[1024];
    const char *config = globals->config                                  ? globals->config
                         : tdmi_user_config_find(of_user, sizeof of_user) ? of_user
                                                                          : NULL;
    status = config ? tdmi_settings_read_config(settings, config, err) : TDM_OK;
    tdmi_settings_store(settings, globals, frame->values.bytes);
    TDMI_TRY(status);
    if (settings->command)
        TDMI_TRY(tdmi_settings_check_arguments(settings, err));
    return choose_verbosity(settings, globals, err);
}

static void set_log(const struct frame *frame)
{
    const struct tdmi_globals *globals = &frame->globals;
    tdm_log_set_color(tdmi_has_color(stderr));
    tdm_log_set_level(globals->quiet     ? TDM_LOG_ERROR
                      : globals->verbose ? TDM_LOG_DEBUG
                                         : TDM_LOG_INFO);
    if (frame->settings.command)
        tdmi_settings_log(&frame->settings, frame->values.bytes);
}

/* Print the version or help; true when one of them was requested. */
static bool answer_about_tandem(struct frame *frame, int argc, tdm_json_writer *json)
{
    const struct tdmi_command *command = frame->settings.command;
    if (frame->globals.version) {
        tdm_json_string(json, "version", tdm_version());
        tdmi_print(json ? NULL : &frame->out, "tandem %s\n", tdm_version());
        return true;
    }
    if (frame->globals.help || frame->globals.help_all || argc == 1) {
        tdmi_help_write_json(json, command);
        tdmi_help_print(json ? NULL : &frame->out, command, frame->globals.help_all);
        return true;
    }
    return false;
}

/* json is NULL or inside the object that will be printed. */
static tdm_status run_command(struct frame *frame, tdm_json_writer *json, tdm_error *err)
{
    const struct tdmi_settings *settings = &frame->settings;
    struct tdmi_watch watch = {.is_quiet = frame->globals.quiet,
                               .is_verbose = frame->globals.verbose,
                               .has_color = tdmi_has_color(stderr),
                               .unit = "images"};
    struct tdmi_call call = {
        .globals = &frame->globals,
        .settings = settings,
        .values = frame->values.bytes,
        .words = frame->words,
        .arguments = settings->arguments,
        .n_arguments = settings->n_arguments,
        .watch = &watch,
        .out = json ? NULL : &frame->out,
        .json = json,
    };
    if (!settings->command)
        return TDM_FAIL(err, TDM_E_USAGE, "a command is missing; 'tandem help' lists them all");
    tdm_status status = settings->command->run(&call, err);
    tdmi_watch_stop(&watch);
    frame->exit_status = call.exit_status;
    frame->is_silent = call.is_silent;
    return status;
}

static tdm_status run(struct frame *frame, int argc, char **argv, tdm_error *err)
{
    TDMI_AT_END(tdm_json_writer_free_at) tdm_json_writer *json = NULL;
    TDMI_AT_END(tdmi_free_at) const char **words = NULL;
    TDMI_TRY(TDMI_NEW(words, argc + 1, err));
    memcpy(words, argv, sizeof *words * (size_t)argc);
    frame->words = argc > 0 ? words + 1 : words;
    TDMI_TRY(gather(frame, argc, argv, err));
    set_log(frame);
    if (frame->globals.json && !(json = tdm_json_writer_new(2)))
        return TDM_FAIL(err, TDM_E_MEMORY, "there is no memory for the JSON result");
    tdm_json_object_begin(json, NULL);
    if (!answer_about_tandem(frame, argc, json))
        TDMI_TRY(run_command(frame, json, err));
    tdm_json_object_end(json);
    if (json && !frame->is_silent)
        TDMI_TRY(print_json(json, &frame->out, err));
    return tdmi_output_check(&frame->out, err);
}

static void report_error(struct frame *frame, bool is_json, const tdm_error *err)
{
    tdm_json_writer *json = is_json ? tdm_json_writer_new(2) : NULL;
    tdm_error another = {0};
    tdmi_print_error(err, frame->globals.verbose);
    if (json) {
        write_error(json, err);
        if (print_json(json, &frame->out, &another) != TDM_OK)
            tdmi_print_error(&another, true);
    }
    tdm_json_writer_free(json);
}

/* A rank whose statuses pass through another launcher on their way to `tandem run`. */
static bool is_reporting(void)
{
    const char *text = getenv(TDMI_REPORT_VARIABLE);
    return text && *text;
}

/* A rank that is not rank 0; also where its command line is wrong. */
static bool is_follower(const struct frame *frame)
{
    const struct tdmi_command *command = frame->settings.command;
    return command && command->has_ranks && tdm_train_rank() > 0;
}

int main(int argc, char **argv)
{
    struct frame frame = {.out = {.stream = stdout, .has_color = tdmi_has_color(stdout)}};
    tdm_error err = {0};

    fill_standard_streams();
    install_signals();
    choose_allocators();
    if (is_reporting())
        tdmi_rank_line_write(tdm_train_rank(), -1);
    tdm_status status = grow_stack()
                            ? run(&frame, argc, argv, &err)
                            : TDM_FAIL(&err, TDM_E_MEMORY, "starting the program: out of memory");
    /* Another rank has failed and says why; or all end alike. */
    const bool is_said = (frame.is_silent && (err.rank != tdm_train_rank() ||
                                              status == TDM_E_USAGE || status == TDM_E_STOPPED)) ||
                         (status == TDM_E_USAGE && is_follower(&frame));
    const bool is_json = !frame.is_silent && (frame.globals.json || is_json_asked(argc, argv));
    if (status != TDM_OK && !is_said)
        report_error(&frame, is_json, &err);

    tdm_status closing = tdmi_output_close(&frame.out, &err);
    if (status == TDM_OK && closing != TDM_OK) {
        tdmi_print_error(&err, frame.globals.verbose);
        status = closing;
    }
    const int exit_status = status != TDM_OK ? tdm_status_exit(status) : frame.exit_status;
    if (is_reporting())
        tdmi_rank_line_write(tdm_train_rank(), exit_status);
    return exit_status;
}
