//! Media processing: its objects, and refusals of everything that needs hardware.

use std::collections::BTreeMap;

use crate::handle::Handle;
use crate::media::{MediaField, MediaKind, MediaNumber, MediaObject};
use crate::status::{API_NOT_SUPPORT, INVALID_PARAM};
use crate::{AclProcess, Answer, Status};

/// Maximum number of pictures in a batch; the vendor's limit is also 256.
const N_PICTURES_MAX: u32 = 256;
/// Values of a border, one for each channel.
const N_BORDER_VALUES: u32 = 4;

/// Advice to use other libraries for reading and creating pictures and videos.
pub const MEDIA_ADVICE: &str = "Opscope runs networks and processes no pictures. Decode, resize and \
     convert with another library, for example OpenCV or FFmpeg, and copy the result into memory \
     of aclrtMalloc or acldvppMalloc";

impl AclProcess {
    /// For bindings: reports that `function` only exists for linking, and an alternative.
    pub fn refuse_function(&self, function: &str, advice: &str) -> Status {
        let text = format!("{function} is not supported: {advice}");
        self.inner_error(API_NOT_SUPPORT, &text)
    }

    /// `acldvppCreatePicDesc` and so on: an object with initial values for some fields.
    pub fn create_media(&self, kind: MediaKind, fields: &[(MediaField, u64)]) -> Handle {
        // Nothing is checked here: a program may set an impossible width and never use it.
        let handle = self.handles.next();
        let object = MediaObject {
            kind,
            fields: fields.iter().copied().collect(),
            pictures: Vec::new(),
        };
        self.objects().media.insert(handle, object)
    }

    /// `acldvppCreateBatchPicDesc`: a list of `n` descriptions of pictures.
    ///
    /// # Errors
    /// `INVALID_PARAM` for 0, or for more than 256.
    pub fn create_media_batch(&self, n: u32) -> Answer<Handle> {
        if n == 0 || n > N_PICTURES_MAX {
            return Err(INVALID_PARAM);
        }
        // Created before the batch, so that no lock is taken twice.
        let pictures = (0..n).map(|_| self.create_media(MediaKind::PicDesc, &[]));
        let object = MediaObject {
            kind: MediaKind::BatchPicDesc,
            fields: BTreeMap::new(),
            pictures: pictures.collect(),
        };
        let handle = self.handles.next();
        Ok(self.objects().media.insert(handle, object))
    }

    /// `acldvppGetPicDesc`: one of the descriptions of a batch.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a handle that is not a batch, and for an index out of range.
    pub fn media_picture(&self, batch: Handle, index: u32) -> Answer<Handle> {
        let objects = self.objects();
        let object = objects.media.find(batch)?;
        let index = usize::try_from(index).map_err(|_| INVALID_PARAM)?;
        object.pictures.get(index).copied().ok_or(INVALID_PARAM)
    }

    /// `acldvppDestroyPicDesc` and so on. The memory that an object points to stays.
    ///
    /// # Errors
    /// `INVALID_PARAM` for null, another kind, and a destroyed object.
    pub fn destroy_media(&self, kind: MediaKind, object: Handle) -> Answer {
        let mut objects = self.objects();
        // Checked first: a wrong kind must leave the object alone.
        if objects.media.find(object)?.kind != kind {
            return Err(INVALID_PARAM);
        }
        let ended = objects.media.take(object)?;
        for picture in ended.pictures {
            // Programs may have destroyed a picture of the batch themselves.
            objects.media.remove(picture);
        }
        Ok(())
    }

    /// `acldvppSetPicDescData` and so on.
    ///
    /// # Errors
    /// `INVALID_PARAM` for null, another kind, and a destroyed object.
    pub fn set_media<N: MediaNumber>(
        &self,
        kind: MediaKind,
        object: Handle,
        field: MediaField,
        value: N,
    ) -> Answer {
        if let MediaField::Value(index) = field
            && index >= N_BORDER_VALUES
        {
            return Err(INVALID_PARAM);
        }
        let mut objects = self.objects();
        let object = objects.media.find_mut(object)?;
        if object.kind != kind {
            return Err(INVALID_PARAM);
        }
        object.fields.insert(field, value.to_bits());
        Ok(())
    }

    /// `acldvppGetPicDescData` and so on: 0 for an unset field, and for a handle of another kind.
    pub fn media<N: MediaNumber>(&self, kind: MediaKind, object: Handle, field: MediaField) -> N {
        let objects = self.objects();
        let object = objects.media.get(object);
        let object = object.filter(|object| object.kind == kind);
        let bits = object.and_then(|object| object.fields.get(&field));
        N::from_bits(bits.copied().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine_of_environment;

    fn process() -> AclProcess {
        AclProcess::new(engine_of_environment())
    }

    #[test]
    fn fields_keep_their_values_and_kinds_stay_apart() {
        let process = process();
        let picture = process.create_media(MediaKind::PicDesc, &[]);
        let set = |field, value: u32| process.set_media(MediaKind::PicDesc, picture, field, value);
        assert_eq!(set(MediaField::Width, 640), Ok(()));
        let width: u32 = process.media(MediaKind::PicDesc, picture, MediaField::Width);
        assert_eq!(width, 640);
        let height: u32 = process.media(MediaKind::PicDesc, picture, MediaField::Height);
        assert_eq!(height, 0);
        let other: u32 = process.media(MediaKind::StreamDesc, picture, MediaField::Width);
        assert_eq!(other, 0);
        let destroyed = process.destroy_media(MediaKind::StreamDesc, picture);
        assert_eq!(destroyed, Err(INVALID_PARAM));
        assert_eq!(process.destroy_media(MediaKind::PicDesc, picture), Ok(()));
        assert_eq!(set(MediaField::Width, 1), Err(INVALID_PARAM));
    }

    #[test]
    fn a_border_has_four_values() {
        let process = process();
        let border = process.create_media(MediaKind::BorderConfig, &[]);
        let set = |i, value: f64| {
            process.set_media(MediaKind::BorderConfig, border, MediaField::Value(i), value)
        };
        assert_eq!(set(3, -1.5), Ok(()));
        assert_eq!(set(4, 0.0), Err(INVALID_PARAM));
        let value: f64 = process.media(MediaKind::BorderConfig, border, MediaField::Value(3));
        assert_eq!(value.to_bits(), (-1.5_f64).to_bits());
    }

    #[test]
    fn pictures_end_with_their_batch() {
        let process = process();
        assert_eq!(process.create_media_batch(0), Err(INVALID_PARAM));
        assert_eq!(process.create_media_batch(257), Err(INVALID_PARAM));
        let batch = process.create_media_batch(2).unwrap();
        let picture = process.media_picture(batch, 1).unwrap();
        assert_eq!(process.media_picture(batch, 2), Err(INVALID_PARAM));
        let data: Answer =
            process.set_media(MediaKind::PicDesc, picture, MediaField::Data, 64_usize);
        assert_eq!(data, Ok(()));
        let destroyed = process.destroy_media(MediaKind::BatchPicDesc, batch);
        assert_eq!(destroyed, Ok(()));
        let picture = process.destroy_media(MediaKind::PicDesc, picture);
        assert_eq!(picture, Err(INVALID_PARAM));
    }
}
