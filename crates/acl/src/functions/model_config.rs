//! Loads a model with a list of options.

use crate::handle::Handle;
use crate::model::{ConfigValue, ModelConfig};
use crate::status::{FEATURE_UNSUPPORTED, INVALID_PARAM};
use crate::{AclProcess, Answer};

/// `aclmdlConfigAttr`.
const LOAD_TYPE: i32 = 1;
const PATH: i32 = 2;
const ADDRESS: i32 = 3;
const SIZE: i32 = 4;
/// Options for priority and unused memory end here.
const N_OPTIONS: i32 = 64;

impl AclProcess {
    /// `aclmdlCreateConfigHandle`.
    pub fn create_config_handle(&self) -> Handle {
        let handle = self.handles.next();
        self.objects()
            .configs
            .insert(handle, ModelConfig::default())
    }

    /// `aclmdlDestroyConfigHandle`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for null and for a handle that is not, or no longer, a set of load options.
    pub fn destroy_config_handle(&self, config: Handle) -> Answer {
        let ended = self.objects().configs.take(config);
        ended.map(drop)
    }

    /// `aclmdlSetConfigOpt`. Only the options for the source and its kind have an effect.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a handle that is not a set of load options, an unknown option, or a
    /// value of the wrong kind.
    pub fn set_config_option(&self, config: Handle, option: i32, value: ConfigValue<'_>) -> Answer {
        let mut objects = self.objects();
        let config = objects.configs.find_mut(config)?;
        match (option, value) {
            (LOAD_TYPE, ConfigValue::Number(kind)) => config.load_type = kind,
            (PATH, ConfigValue::Path(path)) => config.path = Some(path.to_owned()),
            (ADDRESS, ConfigValue::Address(address)) => config.address = address,
            (SIZE, ConfigValue::Number(size)) => {
                config.size = usize::try_from(size).map_err(|_| INVALID_PARAM)?;
            }
            (LOAD_TYPE..=SIZE, _) => return Err(INVALID_PARAM),
            (0..N_OPTIONS, _) => {}
            _ => return Err(INVALID_PARAM),
        }
        Ok(())
    }

    /// `aclmdlLoadWithConfig`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a handle that is not a set of load options, and if the source or its
    /// kind was not set; `FEATURE_UNSUPPORTED` for queues; otherwise as for
    /// [`AclProcess::load_from_file`].
    pub fn load_with_config(&self, config: Handle) -> Answer<u32> {
        let objects = self.objects();
        let config = objects.configs.find(config)?;
        let (address, size) = (config.address, config.size);
        match config.load_type {
            // From a file, with or without memory allocated by the program, which is not used.
            1 | 2 => {
                let path = config.path.clone().ok_or(INVALID_PARAM)?;
                // Loading takes long, and other threads use the objects meanwhile.
                drop(objects);
                self.load_from_file(&path)
            }
            // From memory, likewise.
            3 | 4 => {
                drop(objects);
                let bytes = self.memory.read(address, size).ok_or(INVALID_PARAM)?;
                self.load_from_mem(&bytes)
            }
            5 | 6 => Err(FEATURE_UNSUPPORTED),
            _ => Err(INVALID_PARAM),
        }
    }
}
