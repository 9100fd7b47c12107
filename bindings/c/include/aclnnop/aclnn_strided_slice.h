#ifndef OPSCOPE_ACLNN_STRIDED_SLICE_H
#define OPSCOPE_ACLNN_STRIDED_SLICE_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* entries from begin on, before end; bits of the masks change what a position means */
ACL_FUNC_VISIBILITY aclnnStatus aclnnStridedSliceGetWorkspaceSize(const aclTensor *self,
        const aclIntArray *begin, const aclIntArray *end, const aclIntArray *strides,
        int64_t beginMask, int64_t endMask, int64_t ellipsisMask, int64_t newAxisMask,
        int64_t shrinkAxisMask, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnStridedSlice(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
