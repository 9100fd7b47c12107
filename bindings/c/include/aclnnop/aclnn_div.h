#ifndef OPSCOPE_ACLNN_DIV_H
#define OPSCOPE_ACLNN_DIV_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* self / other */
ACL_FUNC_VISIBILITY aclnnStatus aclnnDivGetWorkspaceSize(const aclTensor *self,
        const aclTensor *other, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnDiv(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* self / other */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceDivGetWorkspaceSize(aclTensor *selfRef,
        const aclTensor *other, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceDiv(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* self / other */
ACL_FUNC_VISIBILITY aclnnStatus aclnnDivsGetWorkspaceSize(const aclTensor *self,
        const aclScalar *other, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnDivs(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* self / other */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceDivsGetWorkspaceSize(aclTensor *selfRef,
        const aclScalar *other, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceDivs(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* self / other; mode 1 cuts the quotient off, mode 2 rounds it down */
ACL_FUNC_VISIBILITY aclnnStatus aclnnDivModGetWorkspaceSize(const aclTensor *self,
        const aclTensor *other, int32_t mode, aclTensor *out, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnDivMod(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* self / other; mode 1 cuts the quotient off, mode 2 rounds it down */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceDivModGetWorkspaceSize(aclTensor *selfRef,
        const aclTensor *other, int32_t mode, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceDivMod(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* self / other; mode 1 cuts the quotient off, mode 2 rounds it down */
ACL_FUNC_VISIBILITY aclnnStatus aclnnDivModsGetWorkspaceSize(const aclTensor *self,
        const aclScalar *other, int32_t mode, aclTensor *out, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnDivMods(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* self / other; mode 1 cuts the quotient off, mode 2 rounds it down */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceDivModsGetWorkspaceSize(aclTensor *selfRef,
        const aclScalar *other, int32_t mode, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceDivMods(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
