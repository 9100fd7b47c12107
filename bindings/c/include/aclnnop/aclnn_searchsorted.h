#ifndef OPSCOPE_ACLNN_SEARCHSORTED_H
#define OPSCOPE_ACLNN_SEARCHSORTED_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the places where the elements of self keep the rows of sortedSequence in order */
ACL_FUNC_VISIBILITY aclnnStatus aclnnSearchSortedGetWorkspaceSize(const aclTensor *sortedSequence,
        const aclTensor *self, bool outInt32, bool right, const aclTensor *sorter, aclTensor *out,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnSearchSorted(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* the place where self keeps sortedSequence in order */
ACL_FUNC_VISIBILITY aclnnStatus aclnnSearchSortedsGetWorkspaceSize(const aclTensor *sortedSequence,
        const aclScalar *self, bool outInt32, bool right, const aclTensor *sorter, aclTensor *out,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnSearchSorteds(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
