#ifndef OPSCOPE_ACLNN_MEDIAN_H
#define OPSCOPE_ACLNN_MEDIAN_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the lower median of all elements; NaN if one is */
ACL_FUNC_VISIBILITY aclnnStatus aclnnMedianGetWorkspaceSize(const aclTensor *self,
        aclTensor *valuesOut, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnMedian(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* the lower median of axis dim, with its place; NaN if one is */
ACL_FUNC_VISIBILITY aclnnStatus aclnnMedianDimGetWorkspaceSize(const aclTensor *self, int64_t dim,
        bool keepDim, aclTensor *valuesOut, aclTensor *indicesOut, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnMedianDim(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* the lower median of all elements but NaN */
ACL_FUNC_VISIBILITY aclnnStatus aclnnNanMedianGetWorkspaceSize(const aclTensor *self,
        aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnNanMedian(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* the lower median of axis dim without NaN, with its place */
ACL_FUNC_VISIBILITY aclnnStatus aclnnNanMedianDimGetWorkspaceSize(const aclTensor *self,
        int64_t dim, bool keepDim, aclTensor *valuesOut, aclTensor *indicesOut,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnNanMedianDim(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
