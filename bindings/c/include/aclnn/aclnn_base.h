#ifndef OPSCOPE_ACLNN_BASE_H
#define OPSCOPE_ACLNN_BASE_H

/* What every header of aclnnop includes. */

#include "acl_meta.h"

#endif
