#ifndef OPSCOPE_ACL_ACL_H
#define OPSCOPE_ACL_ACL_H

/* The API for programs that run models and dump what their operators saw. */

#include "acl_rt.h"

#include "acl_op.h"

#include "acl_mdl.h"

#endif
