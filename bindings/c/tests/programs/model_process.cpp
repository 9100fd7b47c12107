// Runs a model with a class that owns its memory: model_process MODEL INPUT. Prints the model's
// inputs and outputs, and the five best classes of the first result.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "acl/acl.h"

#define ERROR_LOG(fmt, ...) fprintf(stderr, "[ERROR] " fmt "\n", ##__VA_ARGS__)

enum Result { SUCCESS = 0, FAILED = 1 };

namespace {
void PrintRecentError(const char *what, aclError ret)
{
    const char *message = aclGetRecentErrMsg();
    ERROR_LOG("%s failed, errorCode = %d", what, static_cast<int32_t>(ret));
    std::cout << "recent error: " << (message == nullptr ? "none" : message) << std::endl;
}
}  // namespace

class ModelProcess {
public:
    ModelProcess() = default;
    ~ModelProcess()
    {
        Unload();
        DestroyDesc();
        DestroyDataset(input_);
        DestroyDataset(output_);
    }

    Result LoadModelFromFileWithMem(const std::string &path)
    {
        if (loaded_) {
            ERROR_LOG("has already loaded a model");
            return FAILED;
        }
        aclError ret = aclmdlQuerySize(path.c_str(), &work_size_, &weight_size_);
        if (ret != ACL_ERROR_NONE) {
            PrintRecentError("query model", ret);
            return FAILED;
        }
        // ACL_MEM_MALLOC_HUGE_FIRST tries huge pages first.
        ret = aclrtMalloc(&work_, work_size_, ACL_MEM_MALLOC_HUGE_FIRST);
        if (ret != ACL_ERROR_NONE) {
            PrintRecentError("malloc buffer for work", ret);
            return FAILED;
        }
        ret = aclrtMalloc(&weight_, weight_size_, ACL_MEM_MALLOC_HUGE_FIRST);
        if (ret != ACL_ERROR_NONE) {
            PrintRecentError("malloc buffer for weight", ret);
            return FAILED;
        }
        ret = aclmdlLoadFromFileWithMem(path.c_str(), &model_id_, work_, work_size_, weight_, weight_size_);
        if (ret != ACL_ERROR_NONE) {
            PrintRecentError("load model", ret);
            return FAILED;
        }
        loaded_ = true;
        return SUCCESS;
    }

    Result CreateDesc()
    {
        desc_ = aclmdlCreateDesc();
        if (desc_ == nullptr) {
            ERROR_LOG("create model description failed");
            return FAILED;
        }
        aclError ret = aclmdlGetDesc(desc_, model_id_);
        if (ret != ACL_ERROR_NONE) {
            PrintRecentError("get model description", ret);
            return FAILED;
        }
        return SUCCESS;
    }

    void PrintDesc() const
    {
        for (size_t i = 0; i < aclmdlGetNumInputs(desc_); ++i) {
            aclmdlIODims dims;
            if (aclmdlGetInputDims(desc_, i, &dims) == ACL_SUCCESS) {
                Print("input", aclmdlGetInputNameByIndex(desc_, i), dims, aclmdlGetInputSizeByIndex(desc_, i),
                      aclmdlGetInputDataType(desc_, i), aclmdlGetInputFormat(desc_, i));
            }
        }
        for (size_t i = 0; i < aclmdlGetNumOutputs(desc_); ++i) {
            aclmdlIODims dims;
            if (aclmdlGetOutputDims(desc_, i, &dims) == ACL_SUCCESS) {
                Print("output", aclmdlGetOutputNameByIndex(desc_, i), dims, aclmdlGetOutputSizeByIndex(desc_, i),
                      aclmdlGetOutputDataType(desc_, i), aclmdlGetOutputFormat(desc_, i));
            }
        }
    }

    Result CreateInput(const std::vector<char> &bytes)
    {
        size_t size = aclmdlGetInputSizeByIndex(desc_, 0);
        if (size != bytes.size()) {
            ERROR_LOG("the model takes %zu bytes, the file has %zu", size, bytes.size());
            return FAILED;
        }
        void *device = nullptr;
        aclError ret = aclrtMalloc(&device, size, ACL_MEM_MALLOC_HUGE_FIRST);
        if (ret != ACL_ERROR_NONE) {
            PrintRecentError("malloc input", ret);
            return FAILED;
        }
        ret = aclrtMemcpy(device, size, bytes.data(), bytes.size(), ACL_MEMCPY_HOST_TO_DEVICE);
        if (ret != ACL_ERROR_NONE) {
            PrintRecentError("copy input", ret);
            return FAILED;
        }
        input_ = aclmdlCreateDataset();
        return AddBuffer(input_, device, size);
    }

    Result CreateOutput()
    {
        output_ = aclmdlCreateDataset();
        for (size_t i = 0; i < aclmdlGetNumOutputs(desc_); ++i) {
            size_t size = aclmdlGetOutputSizeByIndex(desc_, i);
            void *device = nullptr;
            aclError ret = aclrtMalloc(&device, size, ACL_MEM_MALLOC_NORMAL_ONLY);
            if (ret != ACL_ERROR_NONE) {
                PrintRecentError("malloc output", ret);
                return FAILED;
            }
            if (AddBuffer(output_, device, size) != SUCCESS) {
                return FAILED;
            }
        }
        return SUCCESS;
    }

    Result Execute()
    {
        aclError ret = aclmdlExecute(model_id_, input_, output_);
        if (ret != ACL_ERROR_NONE) {
            PrintRecentError("execute model", ret);
            return FAILED;
        }
        return SUCCESS;
    }

    void OutputModelResult() const
    {
        aclDataBuffer *buffer = aclmdlGetDatasetBuffer(output_, 0);
        size_t size = aclGetDataBufferSizeV2(buffer);
        std::vector<float> scores(size / sizeof(float));
        if (aclrtMemcpy(scores.data(), size, aclGetDataBufferAddr(buffer), size, ACL_MEMCPY_DEVICE_TO_HOST) !=
            ACL_SUCCESS) {
            ERROR_LOG("copy output failed");
            return;
        }
        std::multimap<float, size_t, std::greater<float>> best;
        for (size_t i = 0; i < scores.size(); ++i) {
            best.insert(std::make_pair(scores[i], i));
        }
        int top = 0;
        for (auto it = best.begin(); it != best.end() && top < 5; ++it) {
            printf("top %d: index[%zu] value[%.6f]\n", ++top, it->second, it->first);
        }
    }

private:
    static void Print(const char *side, const char *name, const aclmdlIODims &dims, size_t size, aclDataType type,
                      aclFormat format)
    {
        printf("%s %s (%s) size %zu type %d format %d dims", side, name, dims.name, size, static_cast<int>(type),
               static_cast<int>(format));
        for (size_t i = 0; i < dims.dimCount; ++i) {
            printf(" %lld", static_cast<long long>(dims.dims[i]));
        }
        printf("\n");
    }

    static Result AddBuffer(aclmdlDataset *dataset, void *device, size_t size)
    {
        aclDataBuffer *buffer = aclCreateDataBuffer(device, size);
        if (buffer == nullptr) {
            ERROR_LOG("create data buffer failed");
            aclrtFree(device);
            return FAILED;
        }
        aclError ret = aclmdlAddDatasetBuffer(dataset, buffer);
        if (ret != ACL_ERROR_NONE) {
            PrintRecentError("add dataset buffer", ret);
            aclDestroyDataBuffer(buffer);
            aclrtFree(device);
            return FAILED;
        }
        return SUCCESS;
    }

    static void DestroyDataset(aclmdlDataset *&dataset)
    {
        if (dataset == nullptr) {
            return;
        }
        for (size_t i = 0; i < aclmdlGetDatasetNumBuffers(dataset); ++i) {
            aclDataBuffer *buffer = aclmdlGetDatasetBuffer(dataset, i);
            (void)aclrtFree(aclGetDataBufferAddr(buffer));
            (void)aclDestroyDataBuffer(buffer);
        }
        (void)aclmdlDestroyDataset(dataset);
        dataset = nullptr;
    }

    void DestroyDesc()
    {
        if (desc_ != nullptr) {
            (void)aclmdlDestroyDesc(desc_);
            desc_ = nullptr;
        }
    }

    void Unload()
    {
        if (loaded_) {
            aclError ret = aclmdlUnload(model_id_);
            if (ret != ACL_ERROR_NONE) {
                PrintRecentError("unload model", ret);
            }
            loaded_ = false;
        }
        if (work_ != nullptr) {
            (void)aclrtFree(work_);
            work_ = nullptr;
        }
        if (weight_ != nullptr) {
            (void)aclrtFree(weight_);
            weight_ = nullptr;
        }
    }

    bool loaded_ = false;
    uint32_t model_id_ = 0;
    size_t work_size_ = 0;
    size_t weight_size_ = 0;
    void *work_ = nullptr;
    void *weight_ = nullptr;
    aclmdlDesc *desc_ = nullptr;
    aclmdlDataset *input_ = nullptr;
    aclmdlDataset *output_ = nullptr;
};

namespace {
Result Process(const char *model, const char *input)
{
    ModelProcess process;
    ModelProcess missing;
    if (missing.LoadModelFromFileWithMem("./no_such_model.om") != FAILED) {
        ERROR_LOG("a model that is not there was loaded");
        return FAILED;
    }
    if (process.LoadModelFromFileWithMem(model) != SUCCESS || process.CreateDesc() != SUCCESS) {
        return FAILED;
    }
    process.PrintDesc();
    std::ifstream file(input, std::ios::binary);
    std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (process.CreateInput(bytes) != SUCCESS || process.CreateOutput() != SUCCESS ||
        process.Execute() != SUCCESS) {
        return FAILED;
    }
    process.OutputModelResult();
    return SUCCESS;
}
}  // namespace

int main(int argc, char **argv)
{
    if (argc != 3) {
        ERROR_LOG("usage: model_process MODEL INPUT");
        return FAILED;
    }
    const int32_t device = 0;
    aclrtContext context = nullptr;
    aclrtStream stream = nullptr;
    if (aclInit(nullptr) != ACL_SUCCESS || aclrtSetDevice(device) != ACL_SUCCESS ||
        aclrtCreateContext(&context, device) != ACL_SUCCESS || aclrtCreateStream(&stream) != ACL_SUCCESS) {
        ERROR_LOG("init resource failed");
        return FAILED;
    }
    Result result = Process(argv[1], argv[2]);
    aclError ret = aclrtDestroyStream(stream);
    ret = ret == ACL_SUCCESS ? aclrtDestroyContext(context) : ret;
    ret = ret == ACL_SUCCESS ? aclrtResetDevice(device) : ret;
    ret = ret == ACL_SUCCESS ? aclFinalize() : ret;
    if (ret != ACL_SUCCESS) {
        PrintRecentError("clean up", ret);
        return FAILED;
    }
    return result;
}
