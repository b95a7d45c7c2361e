//! Which driver it is to be.

use std::env;
use std::fmt;
use std::io;
use std::str::FromStr;

use super::{Driver, DriverKind, EpollDriver, UringDriver};
use crate::probe::Denial;

/// The environment variable that chooses a driver where no option does.
pub const DRIVER_VARIABLE: &str = "RINGWAY_DRIVER";

/// The driver that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DriverChoice {
    /// io_uring where it can be used, epoll otherwise.
    #[default]
    Auto,
    /// io_uring, or none.
    Uring,
    /// epoll.
    Epoll,
}

/// A driver, and why it is that one.
pub struct Opened {
    /// For the thread that opened it.
    pub driver: Box<dyn Driver>,
    /// What it is.
    pub kind: DriverKind,
    /// Why: for the one line of the log, and for the metrics.
    pub why: Why,
}

/// Why a driver was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// It was asked for.
    Chosen,
    /// It is the best one, and can be used here.
    Usable,
    /// io_uring cannot be used here.
    FellBack(Denial),
}

/// A text that names no driver.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is no driver: say auto, uring or epoll{}", origin(*.from_variable))]
pub struct UnknownDriver {
    /// The text.
    pub found: String,
    /// It is the value of [`DRIVER_VARIABLE`].
    pub from_variable: bool,
}

/// Why there is no driver.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// io_uring was asked for, and cannot be used.
    #[error("the driver uring was asked for, but {0}; or choose auto or epoll")]
    Denied(Denial),
    /// epoll failed too.
    #[error("cannot open the driver epoll: {0}: raise the limit of open files (`ulimit -n`)")]
    Failed(#[from] io::Error),
}

/// Opens a driver for the calling thread.
///
/// # Errors
/// io_uring is asked for and denied, or no descriptor is left. See [`OpenError`].
pub fn open(choice: DriverChoice) -> Result<Opened, OpenError> {
    match choice {
        DriverChoice::Epoll => Ok(opened(Box::new(EpollDriver::new()?), Why::Chosen)),
        DriverChoice::Uring => {
            let driver = uring().map_err(OpenError::Denied)?;
            Ok(opened(driver, Why::Chosen))
        }
        DriverChoice::Auto => match uring() {
            Ok(driver) => Ok(opened(driver, Why::Usable)),
            Err(denial) => {
                let driver = Box::new(EpollDriver::new()?);
                Ok(opened(driver, Why::FellBack(denial)))
            }
        },
    }
}

impl DriverChoice {
    /// What the option says; where it says nothing, what [`DRIVER_VARIABLE`] says; otherwise
    /// [`DriverChoice::Auto`].
    ///
    /// # Errors
    /// The variable is set to something else: tell whoever set it.
    pub fn from_option(option: Option<Self>) -> Result<Self, UnknownDriver> {
        let variable = env::var_os(DRIVER_VARIABLE).filter(|text| !text.is_empty());
        match (option, variable) {
            (Some(choice), _) => Ok(choice),
            (None, None) => Ok(Self::Auto),
            (None, Some(text)) => from_variable(&text.to_string_lossy()),
        }
    }
}

fn from_variable(text: &str) -> Result<DriverChoice, UnknownDriver> {
    text.parse()
        .map_err(|unknown: UnknownDriver| UnknownDriver {
            from_variable: true,
            ..unknown
        })
}

fn uring() -> Result<Box<dyn Driver>, Denial> {
    Ok(Box::new(UringDriver::new()?))
}

fn opened(driver: Box<dyn Driver>, why: Why) -> Opened {
    let kind = driver.kind();
    Opened { driver, kind, why }
}

fn origin(from_variable: bool) -> String {
    if from_variable {
        format!(" in the variable {DRIVER_VARIABLE}")
    } else {
        String::new()
    }
}

impl FromStr for DriverChoice {
    type Err = UnknownDriver;

    fn from_str(text: &str) -> Result<Self, UnknownDriver> {
        match text {
            "auto" => Ok(Self::Auto),
            "uring" => Ok(Self::Uring),
            "epoll" => Ok(Self::Epoll),
            other => Err(UnknownDriver {
                found: other.to_owned(),
                from_variable: false,
            }),
        }
    }
}

impl fmt::Display for DriverChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Uring => "uring",
            Self::Epoll => "epoll",
        })
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chosen => f.write_str("asked for"),
            Self::Usable => f.write_str("io_uring can be used here"),
            Self::FellBack(denial) => write!(f, "io_uring cannot be used here: {denial}"),
        }
    }
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened")
            .field("kind", &self.kind)
            .field("why", &self.why)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_reads_as_it_is_written_and_another_word_is_refused_with_what_there_is() {
        for choice in [DriverChoice::Auto, DriverChoice::Uring, DriverChoice::Epoll] {
            assert_eq!(choice.to_string().parse(), Ok(choice));
        }
        let said = from_variable("Uring").unwrap_err().to_string();
        assert_eq!(
            said,
            "\"Uring\" is no driver: say auto, uring or epoll in the variable RINGWAY_DRIVER"
        );
        let option = Some(DriverChoice::Epoll);
        assert_eq!(DriverChoice::from_option(option), Ok(DriverChoice::Epoll));
    }

    #[test]
    fn epoll_opens_when_asked_for_and_says_so() {
        let opened = open(DriverChoice::Epoll).unwrap();
        assert_eq!(
            (opened.kind, &opened.why),
            (DriverKind::Epoll, &Why::Chosen)
        );
        assert_eq!(opened.driver.kind(), opened.kind);
        assert_eq!(opened.why.to_string(), "asked for");
    }

    #[test]
    fn auto_always_opens_and_names_the_cause_of_a_fallback() {
        let opened = open(DriverChoice::Auto).unwrap();
        match &opened.why {
            Why::Usable => assert_eq!(opened.kind, DriverKind::Uring),
            Why::FellBack(denial) => {
                assert_eq!(opened.kind, DriverKind::Epoll);
                assert!(opened.why.to_string().contains(&denial.cause));
            }
            Why::Chosen => panic!("nobody chose"),
        }
    }

    #[test]
    fn uring_where_it_cannot_be_used_is_an_error_that_says_why_and_what_else_there_is() {
        match open(DriverChoice::Uring) {
            Ok(opened) => assert_eq!(opened.kind, DriverKind::Uring),
            Err(OpenError::Denied(denial)) => {
                let said = OpenError::Denied(denial.clone()).to_string();
                assert!(said.contains(&denial.cause), "{said}");
                assert!(said.ends_with("or choose auto or epoll"), "{said}");
            }
            Err(OpenError::Failed(error)) => panic!("{error}"),
        }
    }
}
