/*
 * A lock file: at most one process owns it, the kernel frees it when its owner dies, and its text
 * says who the owner is. It works across hosts where the file system offers fcntl locks (local
 * disks, NFS, Lustre with flock). Where it offers none, the text alone decides: an owner that lives
 * on this host keeps it, a dead one does not, one on another host must be removed by hand.
 *
 * The file stays, emptied, when the lock is given back; its owner may also remove it. Whoever takes
 * a lock makes sure that the file still has its name, so two processes never hold locks on two
 * files of one name.
 */
#pragma once

#include "base/scope.h"
#include "tandem/error.h"
#include <stdbool.h>

typedef struct tdmi_lock tdmi_lock;

/* Never waits. Held by another (or by this process already): TDM_E_SYSTEM naming pid and host. */
tdm_status tdmi_lock_take(const char *path, tdmi_lock **lock, tdm_error *err) TDM_MUST_USE;
/* The method for file systems without locks; tdmi_lock_take falls back to it. */
tdm_status tdmi_lock_take_by_text(const char *path, tdmi_lock **lock, tdm_error *err) TDM_MUST_USE;
/* Accepts NULL. */
void tdmi_lock_give(tdmi_lock *lock);
TDMI_POINTER_RELEASE(tdmi_lock, tdmi_lock_give)
/* Does anybody own it now? Takes and changes nothing. */
bool tdmi_lock_is_held(const char *path);
/* Has the file of a lock that is held still its name? Not when the folder was removed or renamed.
 */
bool tdmi_lock_is_in_place(const tdmi_lock *lock);
/* Give it back and leave no file. Accepts NULL. */
void tdmi_lock_remove(tdmi_lock *lock);
TDMI_POINTER_RELEASE(tdmi_lock, tdmi_lock_remove)
