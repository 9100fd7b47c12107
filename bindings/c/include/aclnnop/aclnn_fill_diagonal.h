#ifndef OPSCOPE_ACLNN_FILL_DIAGONAL_H
#define OPSCOPE_ACLNN_FILL_DIAGONAL_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* fillValue on the diagonal; with wrap, below a tall matrix's square again */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceFillDiagonalGetWorkspaceSize(aclTensor *selfRef,
        const aclScalar *fillValue, bool wrap, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceFillDiagonal(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
