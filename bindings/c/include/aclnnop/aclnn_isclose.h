#ifndef OPSCOPE_ACLNN_ISCLOSE_H
#define OPSCOPE_ACLNN_ISCLOSE_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* |self - other| <= atol + rtol * |other| */
ACL_FUNC_VISIBILITY aclnnStatus aclnnIsCloseGetWorkspaceSize(const aclTensor *self,
        const aclTensor *other, double rtol, double atol, bool equal_nan, aclTensor *out,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnIsClose(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
