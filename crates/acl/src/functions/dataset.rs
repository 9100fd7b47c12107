//! The program's buffers, and lists of them.

use crate::data::{DataBuffer, Dataset, DatasetEntry};
use crate::handle::Handle;
use crate::status::INVALID_PARAM;
use crate::{AclProcess, Answer};

impl AclProcess {
    /// `aclCreateDataBuffer`: stores an address; nothing is read. See `memory` for valid addresses.
    pub fn create_data_buffer(&self, address: usize, size: usize) -> Handle {
        let handle = self.handles.next();
        self.objects()
            .buffers
            .insert(handle, DataBuffer { address, size })
    }

    /// `aclDestroyDataBuffer`: drops the address; the memory stays.
    ///
    /// # Errors
    /// `INVALID_PARAM` for null and for a handle that is not, or no longer, a data buffer.
    pub fn destroy_data_buffer(&self, buffer: Handle) -> Answer {
        let ended = self.objects().buffers.take(buffer);
        ended.map(drop)
    }

    /// `aclGetDataBufferAddr`; 0 for a handle that is not a data buffer.
    pub fn data_buffer_address(&self, buffer: Handle) -> usize {
        let objects = self.objects();
        objects
            .buffers
            .get(buffer)
            .map_or(0, |buffer| buffer.address)
    }

    /// `aclGetDataBufferSizeV2`; 0 for a handle that is not a data buffer.
    pub fn data_buffer_size(&self, buffer: Handle) -> usize {
        let objects = self.objects();
        objects.buffers.get(buffer).map_or(0, |buffer| buffer.size)
    }

    /// `aclUpdateDataBuffer`.
    ///
    /// # Errors
    /// As for [`AclProcess::destroy_data_buffer`].
    pub fn update_data_buffer(&self, buffer: Handle, address: usize, size: usize) -> Answer {
        let mut objects = self.objects();
        let known = objects.buffers.find_mut(buffer)?;
        *known = DataBuffer { address, size };
        Ok(())
    }

    /// `aclmdlCreateDataset`.
    pub fn create_dataset(&self) -> Handle {
        let handle = self.handles.next();
        self.objects().datasets.insert(handle, Dataset::default())
    }

    /// `aclmdlDestroyDataset`: keeps its buffers, and destroys its descriptions.
    ///
    /// # Errors
    /// `INVALID_PARAM` for null and for a handle that is not, or no longer, a dataset.
    pub fn destroy_dataset(&self, dataset: Handle) -> Answer {
        let mut objects = self.objects();
        let removed = objects.datasets.take(dataset)?;
        // These are the dataset's copies; the program's descriptions are not affected.
        for entry in removed.entries {
            objects.tensor_descs.remove(entry.tensor_desc);
        }
        Ok(())
    }

    /// `aclmdlAddDatasetBuffer`.
    ///
    /// # Errors
    /// `INVALID_PARAM` if either is null or of another kind.
    pub fn add_dataset_buffer(&self, dataset: Handle, buffer: Handle) -> Answer {
        let mut objects = self.objects();
        objects.buffers.find(buffer)?;
        let known = objects.datasets.find_mut(dataset)?;
        known.entries.push(DatasetEntry {
            buffer,
            tensor_desc: 0,
        });
        Ok(())
    }

    /// `aclmdlGetDatasetNumBuffers`; 0 for a handle that is not a dataset.
    pub fn dataset_n_buffers(&self, dataset: Handle) -> usize {
        let objects = self.objects();
        objects
            .datasets
            .get(dataset)
            .map_or(0, |known| known.entries.len())
    }

    /// `aclmdlGetDatasetBuffer`.
    pub fn dataset_buffer(&self, dataset: Handle, index: usize) -> Option<Handle> {
        let objects = self.objects();
        let entry = objects.datasets.get(dataset)?.entries.get(index)?;
        Some(entry.buffer)
    }

    /// `aclmdlSetDatasetTensorDesc`: sets a copy of a description for the buffer at `index`, with
    /// the shape for the next executions. The null handle removes it.
    ///
    /// # Errors
    /// `INVALID_PARAM` if dataset or description are invalid, or there is no such buffer.
    pub fn set_dataset_tensor_desc(&self, dataset: Handle, desc: Handle, index: usize) -> Answer {
        let mut objects = self.objects();
        let copy = match desc {
            0 => None,
            desc => Some(objects.tensor_descs.find(desc)?.clone()),
        };
        let known = objects.datasets.find_mut(dataset)?;
        let entry = known.entries.get_mut(index).ok_or(INVALID_PARAM)?;
        let own = entry.tensor_desc;
        match copy {
            None => {
                entry.tensor_desc = 0;
                objects.tensor_descs.remove(own);
            }
            Some(copy) => {
                // A program may hold the handle of the previous copy: it is reused.
                let is_alive = own != 0 && objects.tensor_descs.get(own).is_some();
                let own = if is_alive { own } else { self.handles.next() };
                objects.tensor_descs.insert(own, copy);
                if let Some(known) = objects.datasets.get_mut(dataset) {
                    known.entries[index].tensor_desc = own;
                }
            }
        }
        Ok(())
    }

    /// `aclmdlGetDatasetTensorDesc`: the description of the buffer at `index`, which is destroyed
    /// with the dataset. After an execution those of outputs have the resulting shapes.
    pub fn dataset_tensor_desc(&self, dataset: Handle, index: usize) -> Option<Handle> {
        let objects = self.objects();
        let entry = objects.datasets.get(dataset)?.entries.get(index)?;
        let desc = entry.tensor_desc;
        objects.tensor_descs.get(desc).map(|_| desc)
    }
}
