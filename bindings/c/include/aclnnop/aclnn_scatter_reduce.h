#ifndef OPSCOPE_ACLNN_SCATTER_REDUCE_H
#define OPSCOPE_ACLNN_SCATTER_REDUCE_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* as aclnnScatter; reduce 3 takes the largest, 4 the smallest, 5 the mean; self counts if includeSelf says so */
ACL_FUNC_VISIBILITY aclnnStatus aclnnScatterReduceGetWorkspaceSize(const aclTensor *self,
        int64_t dim, const aclTensor *index, const aclTensor *src, int64_t reduce, bool includeSelf,
        aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnScatterReduce(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* as aclnnScatter; reduce 3 takes the largest, 4 the smallest, 5 the mean; self counts if includeSelf says so */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceScatterReduceGetWorkspaceSize(aclTensor *selfRef,
        int64_t dim, const aclTensor *index, const aclTensor *src, int64_t reduce, bool includeSelf,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceScatterReduce(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
