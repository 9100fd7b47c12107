#ifndef OPSCOPE_ACL_OPS_FV_H
#define OPSCOPE_ACL_OPS_FV_H

/* Search for similar features in hardware. Every function answers ACL_ERROR_API_NOT_SUPPORT, or NULL. */

#include <stddef.h>
#include <stdint.h>

#include "acl/acl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Objects */

typedef struct aclfvInitPara aclfvInitPara;
typedef struct aclfvFeatureInfo aclfvFeatureInfo;
typedef struct aclfvRepoRange aclfvRepoRange;
typedef struct aclfvQueryTable aclfvQueryTable;
typedef struct aclfvSearchInput aclfvSearchInput;
typedef struct aclfvSearchResult aclfvSearchResult;

/* ---- Enumerations */

typedef enum aclfvSearchType {
    SEARCH_1_N = 0,
    SEARCH_N_M = 1
} aclfvSearchType;

/* ---- Functions */

ACL_FUNC_VISIBILITY aclfvInitPara *aclfvCreateInitPara(uint64_t fs_num);
ACL_FUNC_VISIBILITY aclError aclfvDestroyInitPara(aclfvInitPara *init_para);
ACL_FUNC_VISIBILITY aclError aclfvSet1NTopNum(aclfvInitPara *init_para, uint32_t max_top_num_for1_n);
ACL_FUNC_VISIBILITY aclError aclfvSetNMTopNum(aclfvInitPara *init_para, uint32_t max_top_num_for_nm);
ACL_FUNC_VISIBILITY aclfvFeatureInfo *aclfvCreateFeatureInfo(uint32_t id0, uint32_t id1, uint32_t offset,
                                                             uint32_t feature_len, uint32_t feature_count,
                                                             uint8_t *feature_data, uint32_t feature_data_len);
ACL_FUNC_VISIBILITY aclError aclfvDestroyFeatureInfo(aclfvFeatureInfo *feature_info);
ACL_FUNC_VISIBILITY aclfvRepoRange *aclfvCreateRepoRange(uint32_t id0_min, uint32_t id0_max, uint32_t id1_min,
                                                         uint32_t id1_max);
ACL_FUNC_VISIBILITY aclError aclfvDestroyRepoRange(aclfvRepoRange *repo_range);
ACL_FUNC_VISIBILITY aclfvQueryTable *aclfvCreateQueryTable(uint32_t query_cnt, uint32_t table_len, uint8_t *table_data,
                                                           uint32_t table_data_len);
ACL_FUNC_VISIBILITY aclError aclfvDestroyQueryTable(aclfvQueryTable *query_table);
ACL_FUNC_VISIBILITY aclfvSearchInput *aclfvCreateSearchInput(aclfvQueryTable *query_table, aclfvRepoRange *repo_range,
                                                             uint32_t topk);
ACL_FUNC_VISIBILITY aclError aclfvDestroySearchInput(aclfvSearchInput *search_input);
ACL_FUNC_VISIBILITY aclfvSearchResult *aclfvCreateSearchResult(uint32_t query_cnt, uint32_t *result_num,
                                                               uint32_t result_num_data_len, uint32_t *id0,
                                                               uint32_t *id1, uint32_t *result_offset,
                                                               float *result_distance, uint32_t data_len);
ACL_FUNC_VISIBILITY aclError aclfvDestroySearchResult(aclfvSearchResult *search_result);
ACL_FUNC_VISIBILITY aclError aclfvInit(aclfvInitPara *init_para);
ACL_FUNC_VISIBILITY aclError aclfvRelease(void);
ACL_FUNC_VISIBILITY aclError aclfvRepoAdd(aclfvSearchType type, aclfvFeatureInfo *feature_info);
ACL_FUNC_VISIBILITY aclError aclfvRepoDel(aclfvSearchType type, aclfvRepoRange *repo_range);
ACL_FUNC_VISIBILITY aclError aclfvDel(aclfvFeatureInfo *feature_info);
ACL_FUNC_VISIBILITY aclError aclfvModify(aclfvFeatureInfo *feature_info);
ACL_FUNC_VISIBILITY aclError aclfvSearch(aclfvSearchType type, aclfvSearchInput *search_input,
                                         aclfvSearchResult *search_rst);

#ifdef __cplusplus
}
#endif

#endif
