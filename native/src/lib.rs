//! The codec of Stream-CAR for ordinary input. The functions in Python are the reference: this gives what they give, or
//! no answer. `tests/native` compares the two. There are no rules in here.

mod documents;
mod json;
mod terms;
mod times;

use pyo3::prelude::*;

#[pymodule]
mod stream_car_native {
    use super::*;

    #[pymodule_export]
    use crate::documents::DocumentDecoder;
    #[pymodule_export]
    use crate::terms::TermJoiner;

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("IS_ENABLED", std::env::var_os("STREAM_CAR_NATIVE").is_none_or(|value| value != "0"))
    }
}
