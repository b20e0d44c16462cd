//! The only file that names the library of distribution functions.

use statrs::distribution::{Continuous, ContinuousCDF, Normal, StudentsT};
use statrs::function::{beta::beta_reg, gamma};

/// Probability that Student's t with `freedom` degrees of freedom is at least `t` away from 0.
pub(crate) fn t_two_sided(t: f64, freedom: f64) -> f64 {
    f_above(t * t, 1.0, freedom)
}

/// The value that Student's t stays below with this probability, which is above one half.
pub(crate) fn t_quantile(probability: f64, freedom: f64) -> f64 {
    let student = StudentsT::new(0.0, 1.0, freedom).expect("degrees of freedom are above 0");
    // The library stops early with many degrees of freedom: two steps of Newton's method add 8 digits.
    let closer = |t: f64| t + (t_two_sided(t, freedom) / 2.0 - (1.0 - probability)) / student.pdf(t);
    closer(closer(student.inverse_cdf(probability)))
}

/// Probability that a standard normal variable is above `z`.
pub(crate) fn normal_above(z: f64) -> f64 {
    Normal::standard().sf(z)
}

/// Probability that a standard normal variable is at most `z`.
pub(crate) fn normal_below(z: f64) -> f64 {
    Normal::standard().cdf(z)
}

/// The value that a standard normal variable stays below with this probability.
pub(crate) fn normal_quantile(probability: f64) -> f64 {
    Normal::standard().inverse_cdf(probability)
}

/// Probability that Fisher's F with these degrees of freedom is above `f`.
pub(crate) fn f_above(f: f64, between: f64, within: f64) -> f64 {
    let part = between * f;
    if part < within {
        // Near 1, `within / (within + part)` would round `part` away.
        return 1.0 - beta_reg(between / 2.0, within / 2.0, part / (within + part));
    }
    // `part` may be infinite: then the argument is 0, and so is the probability.
    beta_reg(within / 2.0, between / 2.0, within / (within + part))
}

/// The natural logarithm of the gamma function.
pub(crate) fn ln_gamma(x: f64) -> f64 {
    gamma::ln_gamma(x)
}
