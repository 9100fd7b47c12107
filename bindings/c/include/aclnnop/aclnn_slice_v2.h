#ifndef OPSCOPE_ACLNN_SLICE_V2_H
#define OPSCOPE_ACLNN_SLICE_V2_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* as aclnnSlice, along several axes */
ACL_FUNC_VISIBILITY aclnnStatus aclnnSliceV2GetWorkspaceSize(const aclTensor *self,
        const aclIntArray *starts, const aclIntArray *ends, const aclIntArray *axes,
        const aclIntArray *steps, aclTensor *out, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnSliceV2(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
