#ifndef OPSCOPE_ACLNN_CONSTANT_PAD_ND_H
#define OPSCOPE_ACLNN_CONSTANT_PAD_ND_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* self with value before and behind the entries of its last axes */
ACL_FUNC_VISIBILITY aclnnStatus aclnnConstantPadNdGetWorkspaceSize(const aclTensor *self,
        const aclIntArray *pad, const aclScalar *value, aclTensor *out, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnConstantPadNd(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
