//! The time of the system, which may be set to anything.

use std::time::SystemTime;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};

/// The time. Beyond the calendar, which ends with the year 9999, it is a time of its last day.
pub fn timestamp() -> Timestamp {
    within_calendar(SystemTime::now())
}

/// The local time, as [`timestamp`].
pub fn local() -> Zoned {
    timestamp().to_zoned(TimeZone::system())
}

fn within_calendar(time: SystemTime) -> Timestamp {
    // Room for names that count on from here.
    let day = SignedDuration::from_hours(24);
    let [first, last] = [Timestamp::MIN + day, Timestamp::MAX - day];
    match Timestamp::try_from(time) {
        Ok(time) => time.clamp(first, last),
        Err(_) if time < SystemTime::UNIX_EPOCH => first,
        Err(_) => last,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_beyond_the_calendar_are_times_of_its_ends() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let year = |time| within_calendar(time).to_zoned(TimeZone::UTC).year();
        assert_eq!(year(at(0)), 1970);
        assert_eq!(year(at(253_402_300_799)), 9999);
        assert_eq!(year(at(253_402_300_800)), 9999);
        assert_eq!(year(at(u64::MAX / 4)), 9999);
        let before = SystemTime::UNIX_EPOCH - Duration::from_secs(1 << 60);
        assert_eq!(year(before), -9999);
    }
}
