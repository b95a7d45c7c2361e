//! `split`: two streams out of one.

use super::condition::input_and_condition;
use crate::job::Port;
use crate::job::file::error::JobFileError;
use crate::job::file::inputs::Consumer;
use crate::job::file::wiring::Wiring;
use crate::operator::SideTag;
use crate::operators::columnar::Split;

pub(super) fn add(wiring: &mut Wiring<'_>, consumer: &Consumer<'_>) -> Result<(), JobFileError> {
    let (input, condition) = input_and_condition(wiring, consumer)?;
    let node = wiring.operator(consumer, &input, &["others"], move |_| {
        let condition = condition.clone();
        let to_main = Box::new(move |batch: &_| Ok(condition.evaluate_predicate(batch)?));
        Ok(Box::new(Split::new(to_main, SideTag::new(0))))
    });
    let name = consumer.declared.name;
    let others = input.behind(node, Port::Side(0), input.schema.clone());
    wiring.name(format!("{name}.others"), others);
    wiring.name(name, input.behind(node, Port::Main, input.schema.clone()));
    Ok(())
}
